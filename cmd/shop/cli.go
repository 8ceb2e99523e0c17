package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"
)

// commandLine is everything that can be typed.
type commandLine struct {
	LogFormat string `help:"How to log: text or json." enum:"text,json" default:"text" variable:"SHOP_LOG_FORMAT"`
	LogLevel  string `help:"What to log: debug, info, warn or error." enum:"debug,info,warn,error" default:"info" variable:"SHOP_LOG_LEVEL"`

	ShowVersion versionFlag `name:"version" help:"Print what was built."`

	Serve   serveCommand   `cmd:"" help:"Sell, over HTTP. Without settings on an embedded database and lock server."`
	Migrate migrateCommand `cmd:"" help:"Bring the database's schema up to date."`
	Seed    seedCommand    `cmd:"" help:"Create SKUs with stock."`
	Audit   auditCommand   `cmd:"" help:"Compare levels, ledger and orders. Exit 1 if they differ."`
	Token   tokenCommand   `cmd:"" help:"Mint a buyer's token, for development."`
	Ready   readyCommand   `cmd:"" help:"Exit 0 if a running shop is ready, 1 if not."`
	Version versionCommand `cmd:"" help:"Print what was built."`
}

// program is what a command works with, beside its context.
type program struct {
	stdout io.Writer
	log    *slog.Logger
}

// execute reads the command line and runs the command.
func execute(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	var line commandLine
	answered := false // by --help or --version
	parser, err := kong.New(&line,
		kong.Name("shop"),
		kong.Description("A shop that never oversells."),
		kong.Writers(stdout, stderr),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Exit(func(int) { answered = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Resolvers(environment(getenv)),
		kong.ValueFormatter(nameVariable),
	)
	if err != nil {
		return err
	}
	if len(args) == 0 || args[0] == "help" { // shop help serve
		args = slices.Concat(args[min(1, len(args)):], []string{"--help"})
	}
	parsed, err := parser.Parse(args)
	if answered {
		return nil
	}
	if err != nil {
		var at *kong.Context
		if wrong := (*kong.ParseError)(nil); errors.As(err, &wrong) {
			at = wrong.Context
		}
		return &usageError{command: mistaken(err), cause: blame(err, at, getenv)}
	}
	log := newLog(stderr, line.LogFormat, line.LogLevel)
	redis.SetLogger(redisLog{log})
	otel.SetErrorHandler(traceLog{log})
	err = parsed.Run(&program{stdout: stdout, log: log})
	if wrong := (*usageError)(nil); errors.As(err, &wrong) {
		return &usageError{command: wrong.command, cause: blame(wrong.cause, parsed, getenv)}
	}
	return err
}

// versionFlag is the version command for those who look for a flag.
type versionFlag bool

// BeforeReset answers before anything else on the command line is judged.
func (versionFlag) BeforeReset(k *kong.Kong) error {
	k.Exit(exitDone)
	return versionCommand{}.Run(&program{stdout: k.Stdout})
}

// mistaken returns the command whose use was wrong.
func mistaken(err error) string {
	if wrong := (*kong.ParseError)(nil); errors.As(err, &wrong) && wrong.Context != nil {
		if node := wrong.Context.Selected(); node != nil {
			return node.FullPath()
		}
	}
	return "shop"
}

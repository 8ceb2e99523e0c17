// Command shop is the server and its operator's commands.
//
//	shop serve     sell, over HTTP
//	shop migrate   bring the database's schema up to date
//	shop seed      create SKUs with stock
//	shop audit     compare levels, ledger and orders; exit 1 on a difference
//	shop backup    copy the database of --data, also while the shop sells
//	shop token     mint a buyer's token, for development
//	shop ready     exit 0 if a running shop is ready
//
// Flags override environment variables, and these override defaults. Empty variables are ignored. Exit codes: 0 done, 1
// failed, 2 used wrongly. Results go to standard output, logs and errors to standard error.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9/logging"
	"go.opentelemetry.io/otel"

	"example.com/shop/internal/app"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	// The first SIGINT or SIGTERM ends ctx. A second one kills the process, but not within 100 ms: timeout(1) sends one
	// to the process and one to its group.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		time.Sleep(100 * time.Millisecond)
		stop()
	})
	os.Exit(run(ctx, os.Args[1:]))
}

// run maps the outcome of the program to an exit code.
func run(ctx context.Context, args []string) int {
	command, err := execute(ctx, args)
	if err == nil {
		return exitDone
	}
	if errors.As(err, new(usageError)) {
		fmt.Fprintf(os.Stderr, "shop: %v\nSee `%s --help`.\n", err, command)
		return exitUsage
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if !errors.Is(err, errDifferences) { // the command has printed them
		fmt.Fprintf(os.Stderr, "shop: %v\n", err)
	}
	return exitFailed
}

// commandLine is the global flags and the commands. kong shows a command's Help below its flags, and calls its Run.
type commandLine struct {
	app.LogSettings `embed:""`
	Version         kong.VersionFlag `help:"Print what was built."`

	Serve   serveCommand   `cmd:"" help:"Sell, over HTTP. Without settings on a SQLite file, with locks in this process."`
	Migrate migrateCommand `cmd:"" help:"Bring the database's schema up to date."`
	Seed    seedCommand    `cmd:"" help:"Create SKUs with stock."`
	Audit   auditCommand   `cmd:"" help:"Compare levels, ledger and orders. Exit 1 if they differ."`
	Backup  backupCommand  `cmd:"" help:"Copy the database of --data, also while the shop sells."`
	Token   tokenCommand   `cmd:"" help:"Mint a buyer's token, for development."`
	Ready   readyCommand   `cmd:"" help:"Exit 0 if a running shop is ready, 1 if not."`
}

// program is what the commands share.
type program struct {
	stdout io.Writer
	log    *slog.Logger
	json   bool // the format of the log
}

// execute parses the command line and runs the command. It returns the command's name.
func execute(ctx context.Context, args []string) (command string, err error) {
	app.DropEmpty()
	var line commandLine
	printed := false // by --help or --version, which end here
	parser, err := kong.New(&line,
		kong.Name("shop"),
		kong.Description("A shop that never oversells."),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Exit(func(int) { printed = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Vars{"version": app.Version("shop")},
	)
	if err != nil {
		return "shop", err
	}
	if len(args) == 0 || args[0] == "help" { // shop help serve
		args = slices.Concat(args[min(1, len(args)):], []string{"--help"})
	}
	parsed, err := parser.Parse(args)
	if printed {
		return "shop", nil
	}
	if err == nil {
		err = app.RefuseEmpty(parsed)
	}
	if err != nil {
		return selected(err, parsed), usageError{err}
	}
	p := &program{stdout: os.Stdout, log: line.Logger(os.Stderr), json: line.LogFormat == "json"}
	// Both libraries log by a logger of the whole process. go-redis also returns the errors that it logs.
	logging.Disable()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { p.log.Warn("traces are not sent", "error", err) }))
	return selected(nil, parsed), parsed.Run(p)
}

// usageError is a mistake on the command line or in the environment.
type usageError struct{ error }

// selected returns the name of the command, also if the rest of the command line is wrong.
func selected(err error, parsed *kong.Context) string {
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok {
		parsed = wrong.Context
	}
	if parsed != nil && parsed.Selected() != nil {
		return parsed.Selected().FullPath()
	}
	return "shop"
}

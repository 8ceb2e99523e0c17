// Command shop is the server and its operator's commands, which commandLine lists.
//
// Flags override environment variables, and environment variables override defaults. Empty variables are ignored. Exit
// codes: 0 done, 1 failed, 2 used wrongly. Results go to standard output, logs and errors to standard error.
package main

import (
	"log/slog"
	"os"
	"slices"

	"github.com/alecthomas/kong"
	"go.opentelemetry.io/otel"

	"example.com/shop/internal/app"
)

// commandLine has the global flags and the commands. kong shows a command's Help below its flags, and calls its Run.
type commandLine struct {
	app.LogSettings `embed:""`
	Version         kong.VersionFlag `help:"Print what was built."`

	Serve   serveCommand   `cmd:"" help:"Serve the shop over HTTP, by default on a SQLite file with the locks in this process."`
	Migrate migrateCommand `cmd:"" help:"Bring the database's schema up to date."`
	Seed    seedCommand    `cmd:"" help:"Create SKUs with stock."`
	Audit   auditCommand   `cmd:"" help:"Compare levels, ledger and orders. Exit 1 if they differ."`
	Backup  backupCommand  `cmd:"" help:"Copy the SQLite database of a shop, which may go on selling."`
	Token   tokenCommand   `cmd:"" help:"Mint buyers' tokens, for development."`
	Ready   readyCommand   `cmd:"" help:"Check a running shop: exit 0 if it is ready, 1 if not."`
}

// program has what the commands share.
type program struct {
	log  *slog.Logger
	json bool // the format of the log
}

func main() {
	args := os.Args[1:]
	if len(args) == 0 || args[0] == "help" { // shop help serve
		args = slices.Concat(args[min(1, len(args)):], []string{"--help"})
	}
	var line commandLine
	os.Exit(app.Main(app.UntilSignal(), "shop", "A shop that never oversells.", args, &line, func(parsed *kong.Context) error {
		p := &program{log: line.Logger(os.Stderr), json: line.LogFormat == "json"}
		// OpenTelemetry has one error handler for the whole process.
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { p.log.Warn("traces are not sent", "error", err) }))
		return parsed.Run(p)
	}))
}

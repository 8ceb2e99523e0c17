// Loadtest sends a crowd of buyers to a shop and checks what it sold.
//
// For each strategy it goes
//
//	start shops -> put fresh SKUs up for sale -> race -> audit -> recheck -> verdict
//
// and reaches the shops over HTTP only. The verdict comes from the shop's own audit and from the buyers' log together;
// neither is believed alone.
//
// The parts: crowd sends the orders, shopclient speaks to a shop, shops starts some or finds them, result judges and is
// the model of what came of it, which the terminal, JSON and web show. step plays two buyers against each other, by one
// schedule or by all. faults breaks shops while they sell, bench measures, and lang has the Chinese of what the others
// explain.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/app"
	"example.com/shop/loadtest/bench"
	"example.com/shop/loadtest/faults"
	"example.com/shop/loadtest/step"
)

// commands is the command line. Each command is a struct of its flags that has Run, and may have Validate, called by
// kong, and Footer, which stands below the flags in its help.
type commands struct {
	Race    raceCommand    `cmd:"" default:"withargs" help:"${race}"`
	Step    step.Command   `cmd:"" help:"${step}"`
	Explore step.Explore   `cmd:"" help:"${explore}"`
	Bench   bench.Command  `cmd:"" help:"Measures orders per second over HTTP by each strategy."`
	Faults  faults.Command `cmd:"" help:"${faults}"`
}

func main() {
	// A write to a closed pipe or connection is an error like any other: it must not end the program before it has stopped
	// what it started.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second Ctrl-C does not wait for the clean-up, but not within 100 ms: timeout(1) sends one to the process and one to
	// its group.
	context.AfterFunc(ctx, func() {
		time.Sleep(100 * time.Millisecond)
		stop()
	})
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// environment is what a command gets from its surroundings.
type environment struct {
	getenv         func(string) string
	stdout, stderr io.Writer
	terminal       func(io.Writer) bool
}

// Exit codes.
const (
	exitOK     = 0
	exitBroken = 1 // a strategy was not as it is designed to be, or the work could not be done
	exitUsage  = 2
	exitUnread = 141 // the reader of the output has ended, as in: loadtest --help | head; SIGPIPE ends other programs with this code
)

var (
	errBroken = errors.New("a strategy was not as it is designed to be") // the report says which
	errUsage  = errors.New("usage")                                      // the flags ask for what cannot be
)

// abouts are the texts above the flags in the commands' help.
var abouts = kong.Vars{ //nolint:gochecknoglobals // a constant
	"race": raceAbout, "step": step.About, "explore": step.ExploreAbout, "faults": faults.About,
}

// run is the whole program. It returns the exit code: exitOK if every strategy that is designed to be correct was, and
// answered every buyer.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	helpShown := false
	around := environment{getenv, stdout, stderr, isTerminal}
	s := newScreen(around, "")
	parser := kong.Must(new(commands),
		kong.Name("loadtest"),
		abouts,
		kong.Writers(stdout, stderr),
		kong.Help(help),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: helpWidth}),
		kong.Exit(func(int) { helpShown = true }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(around, step.Output{Out: s.out, Colour: s.colour, Progress: s.print}),
	)
	if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
		args = []string{"race", "--help"} // which names the other commands
	}
	parsed, err := parser.Parse(args)
	if helpShown {
		return exitOK
	}
	if err == nil {
		err = app.RefuseEmpty(parsed)
	}
	if err == nil {
		err = parsed.Run()
	} else {
		err = fmt.Errorf("%w: %w", errUsage, err)
	}
	switch _, ofFile := errors.AsType[*fs.PathError](err); {
	case err == nil:
		return exitOK
	case ofFile && errors.Is(err, syscall.EPIPE):
		return exitUnread
	case errors.Is(err, errUsage), errors.Is(err, step.ErrSchedule):
		fmt.Fprintf(stderr, "loadtest: %v\nEach command has a --help: go run ./loadtest --help\n", err)
		return exitUsage
	case ctx.Err() != nil:
		err = errors.Join(errors.New("interrupted"), err)
	}
	fmt.Fprintln(stderr, "loadtest:", err)
	return exitBroken
}

// help is kong's, and the footer of the command.
func help(options kong.HelpOptions, parsed *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, parsed); err != nil {
		return err
	}
	if node := parsed.Selected(); node != nil {
		if c, ok := node.Target.Addr().Interface().(interface{ Footer() string }); ok {
			_, err := io.WriteString(parsed.Stdout, c.Footer())
			return err
		}
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitOK     = 0 // every strategy that promises to be correct was, and answered every buyer
	exitBroken = 1 // one did not, or the test could not be done
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the clean-up
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

var (
	// errUsage means that the flags ask for something that cannot be.
	errUsage = errors.New("usage")

	// errBroken means that a strategy did not keep its promise. The report has
	// said so already.
	errBroken = errors.New("a promise was broken")
)

// run is the whole program. It returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	flags, err := parse(args, stdout, stderr)
	if errors.Is(err, errHelpShown) {
		return exitOK
	}
	if err == nil {
		l := lab{flags: flags, screen: newScreen(getenv, stdout, stderr, flags.JSON), log: newShopLog(stderr)}
		err = l.test(ctx)
	}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errBroken):
		return exitBroken
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "loadtest: %v\nTry: go run ./loadtest --help\n", err)
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "loadtest: interrupted; what it started is stopped and removed")
		return exitBroken
	}
	fmt.Fprintf(stderr, "loadtest: %v\n", err)
	return exitBroken
}

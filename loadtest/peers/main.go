package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"example.com/shop/loadtest/cleanup"
)

// Exit codes.
const (
	exitOK     = 0
	exitBroken = 1 // ours did not keep a promise, or the comparison could not be done
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

	// errBroken means that ours let two in at once, hung, or failed. The tables
	// have said so already.
	errBroken = errors.New("a promise was broken")
)

// run is the whole program. It returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	flags, err := parse(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err == nil {
		err = flags.do(ctx, getenv, stdout, stderr)
	}
	return exit(ctx, err, stderr)
}

// exit tells what went wrong and returns the exit code.
func exit(ctx context.Context, err error, stderr io.Writer) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "peers: %v\nTry: go run . --help\n", err)
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintf(stderr, "peers: %s\n", cleanup.Interrupted(err))
		return exitBroken
	}
	fmt.Fprintf(stderr, "peers: %v\n", err)
	return exitBroken
}

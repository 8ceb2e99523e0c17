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
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run is the program. The first SIGINT or SIGTERM ends ctx; a second one ends
// the process at once, unless the command has a use for it.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	err := execute(ctx, args, getenv, stdout, stderr)
	if err == nil {
		return exitDone
	}
	if wrong := (*usageError)(nil); errors.As(err, &wrong) {
		fmt.Fprintf(stderr, "shop: %v\nRun `%s --help` for what is right.\n", wrong.cause, wrong.command)
		return exitUsage
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errInterrupted // what it was about to do is no news to who ended it
	}
	if !errors.Is(err, errDifferences) { // they are printed already
		fmt.Fprintf(stderr, "shop: %v\n", err)
	}
	if second := (*signalError)(nil); errors.As(err, &second) {
		return second.exitCode()
	}
	return exitFailed
}

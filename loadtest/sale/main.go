package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"example.com/shop/loadtest/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the clean-up
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// errBroken means that a shop's books are wrong. The tables have said so already.
var errBroken = errors.New("a promise was broken: see the column right")

// run is the whole program. It returns the exit code: Broken also if books disagree
// with what buyers were told.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	var err error
	if len(args) == 2 && args[0] == nothing {
		err = serveNothing(ctx, args[1], stdout)
	} else {
		err = bench(ctx, args, getenv, stdout, stderr)
	}
	return cli.Exit(ctx, "sale", "./loadtest/sale", err, stderr)
}

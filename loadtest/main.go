package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/steps"
)

func main() {
	if was, err := steps.Child(os.Getenv, os.Stdin, os.Stdout); was {
		if err != nil {
			fmt.Fprintln(os.Stderr, "loadtest: shop of a play:", err)
			os.Exit(cli.Broken)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the clean-up
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// errBroken means that a strategy did not keep its promise. The report has said so
// already.
var errBroken = errors.New("a promise was broken")

// run is the whole program. It returns the exit code: OK if every strategy that
// promises to be correct was, and answered every buyer.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	command, rest := command(args)
	path := strings.Join(append([]string{"./loadtest"}, args[:len(args)-len(rest)]...), " ")
	err := command(ctx, call{args: rest, getenv: getenv, stdout: stdout, stderr: stderr})
	return exit(ctx, path, err, stderr)
}

// exit says what the report has not said.
func exit(ctx context.Context, path string, err error, stderr io.Writer) int {
	if errors.Is(err, errBroken) {
		if err = cleanup.Failed(err); err == nil {
			return cli.Broken
		}
	}
	return cli.Exit(ctx, "loadtest", path, err, stderr)
}

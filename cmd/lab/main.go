// Command lab is the teaching shop: the service of cmd/shop, in which each request may choose how its order is sold, also
// by a strategy that oversells, and can be recorded and stopped. It trusts the names that buyers
// give, and any client may change its stock.
//
// Flags override environment variables, and these override defaults. Empty variables are ignored. Exit codes: 0 done, 1
// failed, 2 used wrongly.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9/logging"

	"example.com/shop/internal/app"
	"example.com/shop/internal/auth"
	"example.com/shop/internal/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { // a second signal kills the process, but not the one that timeout(1) sends to its group
		time.Sleep(100 * time.Millisecond)
		stop()
	})
	logging.Disable() // go-redis returns the errors that it logs
	os.Exit(run(ctx, os.Args[1:]))
}

// commandLine is the flags.
type commandLine struct {
	lab.Settings    `embed:""`
	app.LogSettings `embed:""`
	Version         kong.VersionFlag `help:"Print what was built."`
}

const help = `The teaching shop: requests choose how their order is sold, also by strategies that oversell, by the header Shop-Strategy; GET /v1/strategies lists them. Buyers need no token, and have no limits unless --rate-limit and --max-open-orders set some; the operator's API is there only with --operator-listen. Keep the shop to yourself. It refuses servers with TLS, and cannot otherwise detect production's.

Without --mysql it keeps a SQLite file, in a temporary folder that is removed at the end or in --data DIR. Without --redis its locks are in this process; several instances need a Redis that they share. A MySQL needs the schema of shop migrate. mysql-lock and for-update need --mysql, zookeeper needs --zookeeper, and redlock needs --redlock where --redis is given.

Examples:
  lab                              a SKU: curl -d '{"sku":"mug","units":100,"price":{"minor":1250,"currency":"EUR"}}' -H 'Content-Type: application/json' localhost:8080/v1/skus
  lab --think 2ms                  let requests oversell, to see why`

// usageError is a mistake on the command line or in the environment.
type usageError struct{ error }

// run maps the outcome of the program to an exit code.
func run(ctx context.Context, args []string) int {
	err := execute(ctx, args)
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(usageError)):
		fmt.Fprintf(os.Stderr, "lab: %v\nSee `lab --help`.\n", err)
		return 2
	}
	fmt.Fprintf(os.Stderr, "lab: %v\n", err)
	return 1
}

func execute(ctx context.Context, args []string) (err error) {
	app.DropEmpty()
	var s commandLine
	printed := false // by --help or --version, which end here
	parser := kong.Must(&s, kong.Name("lab"), kong.Description(help), kong.Exit(func(int) { printed = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}), kong.Vars{"version": app.Version("lab")})
	parsed, err := parser.Parse(args)
	if printed {
		return nil
	}
	if err == nil {
		err = app.RefuseEmpty(parsed)
	}
	if text := os.Getenv("SHOP_OPERATOR_TOKEN"); err == nil && text != "" {
		if s.OperatorToken, err = auth.NewSecret(text); err != nil {
			err = fmt.Errorf("SHOP_OPERATOR_TOKEN: %w", err)
		}
	}
	if err != nil {
		return usageError{err}
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // as in cmd/shop, which the races are about
	}
	s.Log = s.Logger(os.Stderr)
	if s.MySQL == "" && s.Data == "" {
		if s.Data, err = os.MkdirTemp("", "shop-lab-"); err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.Data)) }()
	}
	if err := s.Check(); err != nil {
		return usageError{err}
	}
	if s.Data != "" {
		if err := os.MkdirAll(s.Data, 0o750); err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
	}
	return serve(ctx, s.Settings)
}

// serve serves until ctx ends or the shop fails.
func serve(ctx context.Context, s lab.Settings) error {
	shop, err := lab.Start(ctx, s)
	if err != nil {
		return err
	}
	fmt.Printf("The shop is open at %s\nRequests choose their strategy: GET /v1/strategies lists them. Stop it with Ctrl-C or SIGTERM.\n", shop.URL())
	select {
	case <-ctx.Done():
	case <-shop.Done():
	}
	if err := shop.Shutdown(context.WithoutCancel(ctx)); err != nil { // --drain limits it
		return fmt.Errorf("close the shop: %w", err)
	}
	return shop.Err()
}

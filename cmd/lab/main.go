// Command lab is the teaching shop: the service of cmd/shop, in which each request may choose how its order is sold, also
// by a strategy that oversells, and can be recorded and stopped. It trusts the names that buyers
// give, and any client may change its stock.
//
// Flags override environment variables, and these override defaults. Empty variables are ignored. Exit codes: 0 done, 1
// failed, 2 used wrongly.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/app"
	"example.com/shop/internal/auth"
	"example.com/shop/internal/lab"
)

func main() { os.Exit(run(app.UntilSignal(), os.Args[1:])) }

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

// run returns the exit code of the program.
func run(ctx context.Context, args []string) int {
	var line commandLine
	return app.Main(ctx, "lab", help, args, &line, func(*kong.Context) (err error) {
		if text := os.Getenv("SHOP_OPERATOR_TOKEN"); text != "" {
			if line.OperatorToken, err = auth.NewSecret(text); err != nil {
				return app.UsageError{Err: fmt.Errorf("SHOP_OPERATOR_TOKEN: %w", err)}
			}
		}
		s := &line.Settings
		s.Log = line.Logger(os.Stderr)
		return app.Serve(ctx, &s.Settings, func(bool) (app.Running, error) {
			shop, err := lab.Start(ctx, *s)
			if err != nil {
				return nil, err
			}
			fmt.Printf("The shop is open at %s\nRequests choose their strategy: GET /v1/strategies lists them. Stop it with Ctrl-C or SIGTERM.\n", shop.URL())
			return shop, nil
		})
	}, kong.Vars{"rate_limit": "0", "max_open_orders": "0"})
}

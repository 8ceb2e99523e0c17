// Command lab is the teaching shop. It is the service of cmd/shop, but each request may choose the strategy that sells
// its order, including strategies that oversell, and can be recorded and stopped. The lab trusts the names that buyers
// give, and any client may change its stock.
//
// Flags override environment variables, and environment variables override defaults. Empty variables are ignored. Exit
// codes: 0 done, 1 failed, 2 used wrongly.
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

// commandLine has the flags.
type commandLine struct {
	lab.Settings    `embed:""`
	app.LogSettings `embed:""`
	Version         kong.VersionFlag `help:"Print what was built."`
}

const help = `The teaching shop. The header Shop-Strategy of a request chooses how its order is sold; some strategies
oversell. GET /v1/strategies lists them. Buyers need no token, and have no limits unless --rate-limit or
--max-open-orders sets one. The operator's API needs --operator-listen. A request must name the shop by an address,
localhost or the host of --listen. Do not expose this shop to others, and do not connect it to production's servers:
it refuses servers with TLS, but cannot recognize others.

Without --mysql, the data is a SQLite file in --data DIR or, without that flag, in a temporary folder that is removed
at the end. Without --redis, the locks are in this process; several instances need one Redis that they share. Before
the first start with --mysql, run shop migrate. The strategies mysql-lock and for-update need --mysql, zookeeper needs
--zookeeper, and redlock needs --redlock if --redis is given.

Examples:
  lab                              then create a SKU:
      curl -H 'Content-Type: application/json' localhost:8080/v1/skus \
          -d '{"sku":"mug","units":100,"price":{"minor":1250,"currency":"EUR"}}'
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
			fmt.Printf("The shop is open at %s\nRequests choose their strategy: GET /v1/strategies lists them. "+
				"Stop it with Ctrl-C or SIGTERM.\n", shop.URL())
			return shop, nil
		})
	}, kong.Vars{"rate_limit": "0", "max_open_orders": "0"})
}

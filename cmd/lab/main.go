// Command lab is the teaching shop. It is the service of cmd/shop, but each request may choose the strategy that sells its
// order, including strategies that oversell, and can be recorded and stopped. The lab trusts the names that buyers give,
// and any client may change its stock.
//
// Flags override environment variables, and environment variables override defaults. Empty variables are ignored. Exit
// codes: 0 done, 1 failed, 2 used wrongly.
package main

import (
	"context"
	_ "embed"
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

//go:embed help.txt
var help string

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

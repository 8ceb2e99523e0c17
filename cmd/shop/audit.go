package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/dustin/go-humanize/english"

	"example.com/shop/internal/app"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

type auditCommand struct {
	JSON                 bool   `name:"json" help:"Print JSON, as GET /v1/audit answers."`
	SKU                  string `name:"sku" placeholder:"NAME" help:"Audit this SKU only."`
	app.DatabaseSettings `embed:""`
}

func (auditCommand) Help() string {
	invariants := ""
	for _, p := range stock.Promises() {
		if p.Audited {
			invariants += fmt.Sprintf("  %s  %s\n", p.Invariant, p.Text)
		}
	}
	return `The audit prints one line for each difference: the invariant, the SKU and order, and what differs. The shop may go on selling.

Invariants:
` + invariants + `
The audit cannot check I3, that each order that a buyer was told of exists: only the buyers' own records show it. The load test
compares them. The audit takes less than 100 MB of memory for any number of orders. The JSON lists the first 1,000 SKUs and
differences, and says "truncated" if there are more.

Examples:
  shop audit --data ./data
  shop audit --mysql 'shop:secret@tcp(db:3306)/shop' --sku mug --json`
}

func (a *auditCommand) Run(ctx context.Context, p *program) error {
	database, err := p.open(ctx, false, a.DatabaseSettings, app.UpToDate)
	if err != nil {
		return err
	}
	defer database.Close()
	audit := a.asLines
	if a.JSON {
		audit = a.asJSON
	}
	ok, err := audit(ctx, database)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if !ok {
		return app.ErrPrinted
	}
	return nil
}

func (a *auditCommand) asJSON(ctx context.Context, database *store.Store) (ok bool, err error) {
	report := stock.NewReport()
	err = database.Audit(ctx, a.SKU, report.AddAccount, report.AddDifference)
	if err != nil {
		return false, err
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	return report.OK, encoder.Encode(report)
}

// asLines prints each difference when it is found, so that memory does not grow with their number.
func (a *auditCommand) asLines(ctx context.Context, database *store.Store) (ok bool, err error) {
	var skus, lines, ordered, differences int
	var supplied, oversold int64
	err = database.Audit(ctx, a.SKU,
		func(account stock.Account) error {
			skus++
			lines += int(account.Orders) // an order of several SKUs has a line of each
			ordered += int(account.OrderedUnits)
			supplied += account.Supplied
			oversold += account.Oversold()
			return nil
		},
		func(d stock.Difference) error {
			differences++
			where := ""
			if d.SKU != "" {
				where += " sku " + d.SKU
			}
			if d.OrderID != "" {
				where += " order " + d.OrderID
			}
			_, err := fmt.Printf("%s%s: %s\n", d.Invariant, where, d.Detail)
			return err
		})
	if err != nil {
		return false, err
	}
	fmt.Printf("%s, %s, %s ordered of %d supplied, %d oversold: %s\n",
		english.Plural(skus, "SKU", ""), english.Plural(lines, "order line", ""), english.Plural(ordered, "unit", ""),
		supplied, oversold, english.Plural(differences, "difference", ""))
	return differences == 0, nil
}

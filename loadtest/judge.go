package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/stats"
	"example.com/shop/loadtest/verdict"
	"example.com/shop/loadtest/web"
)

const judgeAbout = `Judges what other tools have bought, such as k6 and wrk, by the shop's own books.

docs/load.md has scripts for both tools, which may run on several machines. Judge when all of them
have ended: it waits until two audits in a row are alike.`

// judgeCommand judges SKUs by the shop's audit.
type judgeCommand struct {
	Target string   `required:"" placeholder:"URL" help:"The operator's listener of a shop, with its token in $$SHOP_OPERATOR_TOKEN; or a teaching shop (cmd/lab), or a load balancer in front of several."`
	SKUs   []string `name:"sku" sep:"none" required:"" placeholder:"NAME" help:"The SKU to judge. Can be given again."`
}

const noLog = `By the shop's books alone. Without a log of the buyers it is not known whether
some were turned away while units were left (undersold), nor whether every order
that was acknowledged is there: the races of 'go run ./loadtest' check both.
`

// Footer stands below the flags in the help.
func (judgeCommand) Footer() string {
	return `
The columns: ordered are the units in pending and paid orders, oversold those beyond the supplied.
Available, reserved and sold are the stock row, which a wrong strategy gets wrong. Findings are
where levels, ledger and orders differ, by the shop's audit; some are listed below the table. An
order that has expired counts no more: judge within the shop's --pay-within.

` + noLog + `
Example:
  go run ./loadtest judge --target http://localhost:8080 --sku mug --sku cup

Exit code: 0 if every SKU is correct, 1 if one is not or the shop could not be asked, 2 if the flags
make no sense.
`
}

// Validate returns an InputError for a target that is no URL.
func (c *judgeCommand) Validate() error {
	if !isURL(c.Target) {
		return &web.InputError{Field: "target", Text: wantURL}
	}
	return nil
}

var errIncorrect = errors.New("the books are not correct")

// Run prints the judgement of each SKU. It returns errIncorrect unless all are correct.
func (c *judgeCommand) Run(ctx context.Context, e environment) error {
	conns := shopclient.NewConnections(1, operatorTimeout)
	defer conns.CloseIdleConnections()
	operator := shopclient.New(c.Target, conns).WithKeys(&shopclient.Keys{Operator: e.getenv("SHOP_OPERATOR_TOKEN")}, "")
	audits, err := audit(ctx, operator, c.SKUs, true)
	if errors.Is(err, shopclient.ErrNotFound) {
		err = fmt.Errorf("%w: the shop has no such SKU, or this is not where its operator asks: see --target in the help", err)
	}
	if err != nil {
		return err
	}
	s := newScreen(e, "")
	var rows []table.Row
	var remarks strings.Builder
	for _, a := range audits {
		b, j := a.Books, verdict.Books(a)
		rows = append(rows, table.Row{b.SKU, b.Supplied, b.Orders, b.OrderedUnits, j.Oversold, b.Available, b.Reserved, b.Sold, len(a.Differences), s.word(j.Verdict)})
		for _, finding := range j.Findings {
			hang(&remarks, screenWidth, b.SKU, len(b.SKU)+2, finding)
		}
		if j.Verdict != verdict.Correct {
			err = errIncorrect
		}
	}
	header := table.Row{"SKU", "supplied", "orders", "ordered", "oversold", "available", "reserved", "sold", "findings", "verdict"}
	if remarks.Len() > 0 {
		remarks.WriteByte('\n')
	}
	_, writeErr := fmt.Fprint(e.stdout, stats.Fold(screenWidth, header, rows, 2, 9), "\n", &remarks, noLog)
	return errors.Join(err, writeErr)
}

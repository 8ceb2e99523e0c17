package main

import (
	"fmt"
	"slices"

	"example.com/shop/loadtest/buyers"
	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/verdict"
)

// judge compares both sides of the story, SKU by SKU, and writes what comes of it
// into the result. books and sides are in the order of the SKUs.
func judge(result *report.Strategy, supplied int64, carts bool, books []shopclient.Audit, sides []verdict.Told) {
	var judged []verdict.SKU
	orders := int64(0)
	for i, audit := range books {
		sku := verdict.SKU{Name: audit.Books.SKU, Judgement: verdict.Judge(ledger(audit), sides[i])}
		judged = append(judged, sku)
		result.SKUs = append(result.SKUs, report.SKU{
			SKU: sku.Name, Supplied: supplied, Orders: audit.Books.Orders, UnitsSold: audit.Books.OrderedUnits,
			Oversold: sku.Oversold, Undersold: sku.Undersold, Refused: sides[i].Refused, Verdict: string(sku.Verdict),
		})
		result.Supplied += supplied
		result.UnitsSold += audit.Books.OrderedUnits
		orders += audit.Books.Orders
	}
	if carts { // which the books count once for each SKU
		orders = result.Acknowledged
	}
	all := verdict.Together(judged)
	result.SKU, result.Orders = books[0].Books.SKU, orders
	result.Oversold, result.Undersold, result.Verdict = all.Oversold, all.Undersold, string(all.Verdict)
	result.Findings = append(result.Findings, all.Findings...)
	result.Notes = append(result.Notes, all.Notes...)
}

// ledger is the shop's side of the story.
func ledger(a shopclient.Audit) verdict.Books {
	books := verdict.Books{
		Supplied: a.Books.Supplied,
		Orders:   a.Books.Orders,
		Units:    a.Books.OrderedUnits,
		Oversold: a.Books.Oversold,
	}
	for _, d := range a.Differences {
		text := d.Invariant + " " + d.Detail
		if d.OrderID != "" {
			text += " (order " + d.OrderID + ")"
		}
		books.Differences = append(books.Differences, text)
	}
	if !a.OK && len(a.Differences) == 0 {
		books.Differences = []string{"the audit failed, but names no difference"}
	}
	return books
}

// told is the buyers' side of the story, for each SKU.
func told(skus []string, supplied int64, log buyers.Log, lost []buyers.Lost) []verdict.Told {
	sides := make([]verdict.Told, len(skus))
	at := make(map[string]*verdict.Told, len(skus))
	for i, sku := range skus {
		sides[i].Supplied = supplied
		at[sku] = &sides[i]
	}
	why := map[string]string{} // by order id
	for _, l := range lost {
		why[l.OrderID] = fmt.Sprintf("%s of %s: %s", l.OrderID, l.Buyer, l.Why)
	}
	seen := make(map[string]bool, len(log.Records))
	for _, r := range log.Records {
		for _, line := range r.Lines {
			tell(at[line.SKU], r, why[r.OrderID], seen[r.OrderID])
		}
		if r.Outcome == buyers.Ordered {
			seen[r.OrderID] = true
		}
	}
	for i := range sides {
		slices.Sort(sides[i].Repeated)
	}
	return sides
}

// tell adds an order. lost is why it is not there, if so; seen says that it has
// been told before.
func tell(t *verdict.Told, r buyers.Record, lost string, seen bool) {
	switch r.Outcome {
	case buyers.Ordered:
		t.Orders++
		if r.Cancel == buyers.Cancelled && lost == "" {
			t.Cancelled++
		}
		if lost != "" {
			t.Lost = append(t.Lost, lost)
		}
		if seen {
			t.Repeated = append(t.Repeated, r.OrderID)
		}
		if r.Again == buyers.Other {
			t.Doubled = append(t.Doubled, r.Doubled())
		}
	case buyers.Refused:
		if len(r.Lines) == 1 { // of a cart, it is not known which SKU was missing
			t.Refused++
		}
	case buyers.Failed:
		t.Failed++
	case buyers.Unknown:
		t.Unknown++
	}
}

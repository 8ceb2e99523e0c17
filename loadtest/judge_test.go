package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/buyers"
	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/verdict"
)

// Each SKU has its own side of the story. Of a refused cart it is not known which
// SKU was missing; any other outcome counts for all that are in it.
func Test_told(t *testing.T) {
	t.Parallel()
	mug, cup := shopclient.Line{SKU: "mug", Units: 1}, shopclient.Line{SKU: "cup", Units: 1}
	one, cart := []shopclient.Line{mug}, []shopclient.Line{mug, cup}
	log := buyers.Log{Records: []buyers.Record{
		{Buyer: "a", Lines: cart, Outcome: buyers.Ordered, OrderID: "1"},
		{Buyer: "b", Lines: one, Outcome: buyers.Ordered, OrderID: "2", Cancel: buyers.Cancelled},
		{Buyer: "c", Lines: one, Outcome: buyers.Ordered, OrderID: "2"}, // told to two
		{Buyer: "d", Lines: cart, Outcome: buyers.Ordered, OrderID: "3", Cancel: buyers.Cancelled},
		{Buyer: "e", Lines: one, Outcome: buyers.Ordered, OrderID: "4", Again: buyers.Other, AgainBrought: "order 5"},
		{Buyer: "f", Lines: one, Outcome: buyers.Refused},
		{Buyer: "g", Lines: cart, Outcome: buyers.Refused},
		{Buyer: "h", Lines: cart, Outcome: buyers.Failed},
		{Buyer: "i", Lines: cart, Outcome: buyers.Unknown},
	}}
	lost := []buyers.Lost{{Buyer: "d", OrderID: "3", Why: "the shop shows it as pending"}}
	want := []verdict.Told{
		{
			Supplied: 9, Orders: 5, Cancelled: 1, Refused: 1, Failed: 1, Unknown: 1,
			Repeated: []string{"2"}, Lost: []string{"3 of d: the shop shows it as pending"},
			Doubled: []string{"4 of e, whose key brought order 5 the second time"},
		},
		{Supplied: 9, Orders: 2, Failed: 1, Unknown: 1, Lost: []string{"3 of d: the shop shows it as pending"}},
	}
	if diff := cmp.Diff(want, told([]string{"mug", "cup"}, 9, log, lost)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is left of one SKU makes up for none of another, and a cart is one order.
func Test_judge(t *testing.T) {
	t.Parallel()
	books := []shopclient.Audit{
		{OK: true, Books: shopclient.Books{SKU: "mug", Supplied: 5, Orders: 8, OrderedUnits: 8, Oversold: 3}},
		{OK: true, Books: shopclient.Books{SKU: "cup", Supplied: 5, Orders: 2, OrderedUnits: 2}},
	}
	sides := []verdict.Told{{Supplied: 5, Orders: 8}, {Supplied: 5, Orders: 2}}
	got := report.Strategy{Acknowledged: 9}
	judge(&got, 5, true, books, sides)
	want := report.Strategy{
		Acknowledged: 9, Orders: 9, SKU: "mug", Supplied: 10, UnitsSold: 10, Oversold: 3, Verdict: "oversold",
		SKUs: []report.SKU{
			{SKU: "mug", Supplied: 5, Orders: 8, UnitsSold: 8, Oversold: 3, Verdict: "oversold"},
			{SKU: "cup", Supplied: 5, Orders: 2, UnitsSold: 2, Verdict: "correct"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package verdict

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/shopclient"
)

// sound is a race of 1,000 buyers for 100 units in which all went well.
func sound() (shopclient.Audit, told) {
	return shopclient.Audit{OK: true, Books: shopclient.Books{Supplied: 100, Orders: 100, OrderedUnits: 100}}, told{orders: 100, refused: 900}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	type books = shopclient.Audit
	tests := []struct {
		name   string
		change func(b *books, t *told)
		want   Judgement
	}{
		{"all units sold once", func(*books, *told) {}, Judgement{Verdict: Correct}},
		{
			"more units than buyers: none was turned away", func(b *books, t *told) { b.Books.Orders, b.Books.OrderedUnits = 60, 60; t.orders, t.refused = 60, 0 },
			Judgement{Verdict: Correct},
		},
		{
			"lost updates: oversold, whatever the level says", func(b *books, t *told) {
				b.Books.Orders, b.Books.OrderedUnits = 431, 431
				b.Differences = []shopclient.Difference{{Invariant: "I1", Detail: "oversold by 331"}}
				t.orders, t.refused = 431, 569
			},
			Judgement{Verdict: Oversold, Oversold: 331, Findings: []string{"books: I1 oversold by 331"}},
		},
		{
			"units left although buyers were refused", func(b *books, t *told) { b.Books.Orders, b.Books.OrderedUnits = 95, 95; t.orders, t.refused = 95, 905 },
			Judgement{Verdict: Undersold, Undersold: 5},
		},
		{
			"units left, but fewer buyers were refused than units are left", func(b *books, t *told) { b.Books.Orders, b.Books.OrderedUnits = 58, 58; t.orders, t.refused = 58, 2 },
			Judgement{Verdict: Undersold, Undersold: 2},
		},
		{
			"no buyer was served: buyers who failed were turned away too", func(b *books, t *told) {
				b.Books.Orders, b.Books.OrderedUnits = 0, 0
				t.orders, t.refused, t.failed, t.unknown = 0, 0, 40, 960
			},
			Judgement{Verdict: Undersold, Undersold: 100},
		},
		{
			"an acknowledged order is lost, its unit was sold again", func(_ *books, t *told) { t.orders, t.refused = 101, 899; t.lost = []string{"o-1 of buyer-7"} },
			Judgement{Verdict: Inconsistent, Findings: []string{"lost order: o-1 of buyer-7"}},
		},
		{
			"acknowledged orders are lost with their units", func(b *books, t *told) {
				b.Books.Orders, b.Books.OrderedUnits = 95, 95
				t.lost = []string{"a", "b", "c", "d", "e"}
			},
			Judgement{Verdict: Inconsistent, Undersold: 5, Findings: []string{"lost order: a", "lost order: b", "lost order: c", "lost order: 2 more"}},
		},
		{
			"fewer orders in the books than the buyers can show", func(b *books, _ *told) { b.Books.Orders, b.Books.OrderedUnits = 99, 99 },
			Judgement{Verdict: Inconsistent, Undersold: 1, Findings: []string{"buyers hold 100 orders, the books count 99"}},
		},
		{
			"a phantom order that no buyer was told of", func(_ *books, t *told) { t.orders, t.refused = 99, 901 },
			Judgement{Verdict: Inconsistent, Findings: []string{"1 orders that no buyer was told of; 0 buyers had no answer"}},
		},
		{
			"unknown outcomes explain orders that no buyer was told of", func(_ *books, t *told) { t.orders, t.refused, t.unknown = 97, 899, 4 },
			Judgement{Verdict: Correct, Notes: []string{"3 of the 4 buyers who never had an answer have an order"}},
		},
		{
			"more such orders than unknown outcomes", func(_ *books, t *told) { t.orders, t.refused, t.unknown = 95, 901, 4 },
			Judgement{Verdict: Inconsistent, Findings: []string{"5 orders that no buyer was told of; 4 buyers had no answer"}},
		},
		{
			"an unknown outcome cannot stand in for a lost order", func(b *books, t *told) {
				b.Books.Orders, b.Books.OrderedUnits = 100, 100
				t.orders, t.refused, t.unknown = 100, 899, 1
				t.lost = []string{"o-1 of buyer-7"}
			},
			Judgement{Verdict: Inconsistent, Findings: []string{"lost order: o-1 of buyer-7"}},
		},
		{
			"one order acknowledged to two buyers", func(b *books, t *told) {
				b.Books.Orders, b.Books.OrderedUnits = 100, 100
				t.orders, t.refused = 101, 899
				t.repeated = []string{"o-1"}
			},
			Judgement{Verdict: Inconsistent, Findings: []string{"order acknowledged to several buyers: o-1"}},
		},
		{
			"the books disagree without an oversale", func(b *books, _ *told) {
				b.Differences = []shopclient.Difference{{Invariant: "I5", Detail: "level and ledger differ"}}
			},
			Judgement{Verdict: Inconsistent, Findings: []string{"books: I5 level and ledger differ"}},
		},
		{
			"the books forget what was supplied", func(b *books, _ *told) { b.Books.Supplied = 90 },
			Judgement{Verdict: Inconsistent, Findings: []string{"100 units were put up for sale, the books have 90"}},
		},
		{
			"an order that holds more than was bought", func(b *books, t *told) { b.Books.Orders, t.orders, t.refused = 99, 99, 901 },
			Judgement{Verdict: Inconsistent, Findings: []string{"99 orders of one unit each hold 100 units"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, side := sound()
			tt.change(&b, &side)
			if diff := cmp.Diff(tt.want, judge(100, b, side)); diff != "" {
				t.Errorf("judge(%+v, %+v) (-want +got):\n%s", b, side, diff)
			}
		})
	}
}

// A race is judged by what its log tells.
func TestRace(t *testing.T) {
	t.Parallel()
	log := crowd.Log{Records: []crowd.Record{
		{Buyer: "a", Outcome: crowd.Ordered, OrderID: "1"},
		{Buyer: "b", Outcome: crowd.Ordered, OrderID: "1"}, // acknowledged to two
		{Buyer: "c", Outcome: crowd.Ordered, OrderID: "2", Lost: "the shop does not know it"},
		{Buyer: "d", Outcome: crowd.Refused},
		{Buyer: "e", Outcome: crowd.Failed},
		{Buyer: "f", Outcome: crowd.Unknown},
	}}
	audit := shopclient.Audit{Books: shopclient.Books{Supplied: 9, Orders: 1, OrderedUnits: 1}}
	want := Judgement{
		Verdict: Inconsistent, Undersold: 3,
		Findings: []string{"lost order: 2 of c: the shop does not know it", "order acknowledged to several buyers: 1"},
	}
	if diff := cmp.Diff(want, Race(9, audit, log)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package verdict_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/verdict"
)

// sound is a race of 1,000 buyers for 100 units in which all went well.
func sound() (verdict.Books, verdict.Told) {
	return verdict.Books{Supplied: 100, Orders: 100, Units: 100},
		verdict.Told{Supplied: 100, Orders: 100, Refused: 900}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	type (
		books = verdict.Books
		told  = verdict.Told
	)
	tests := []struct {
		name   string
		change func(b *books, t *told)
		want   verdict.Judgement
	}{
		{"all units sold once", func(*books, *told) {}, verdict.Judgement{Verdict: verdict.Correct}},
		{
			"more units than buyers: nobody was turned away", func(b *books, t *told) { b.Orders, b.Units = 60, 60; t.Orders, t.Refused = 60, 0 },
			verdict.Judgement{Verdict: verdict.Correct},
		},
		{
			"lost updates: oversold, whatever the level says", func(b *books, t *told) {
				b.Orders, b.Units, b.Oversold = 431, 431, 331
				b.Differences = []string{"reserved 100, but open orders hold 431 units"}
				t.Orders, t.Refused = 431, 569
			},
			verdict.Judgement{Verdict: verdict.Oversold, Oversold: 331, Findings: []string{"books: reserved 100, but open orders hold 431 units"}},
		},
		{
			"units left although buyers were refused", func(b *books, t *told) { b.Orders, b.Units = 95, 95; t.Orders, t.Refused = 95, 905 },
			verdict.Judgement{Verdict: verdict.Undersold, Undersold: 5},
		},
		{
			"units left, but fewer buyers were refused than units are left", func(b *books, t *told) { b.Orders, b.Units = 58, 58; t.Orders, t.Refused = 58, 2 },
			verdict.Judgement{Verdict: verdict.Undersold, Undersold: 2},
		},
		{
			"nobody was served: buyers who failed were turned away too", func(b *books, t *told) {
				b.Orders, b.Units = 0, 0
				t.Orders, t.Refused, t.Failed, t.Unknown = 0, 0, 40, 960
			},
			verdict.Judgement{Verdict: verdict.Undersold, Undersold: 100},
		},
		{
			"an acknowledged order is lost, its unit was sold again", func(_ *books, t *told) { t.Orders, t.Refused = 101, 899; t.Lost = []string{"o-1 of buyer-7"} },
			verdict.Judgement{Verdict: verdict.Inconsistent, Findings: []string{"lost order: o-1 of buyer-7"}},
		},
		{
			"acknowledged orders are lost with their units", func(b *books, t *told) { b.Orders, b.Units = 95, 95; t.Lost = []string{"a", "b", "c", "d", "e"} },
			verdict.Judgement{Verdict: verdict.Inconsistent, Undersold: 5, Findings: []string{"lost order: a", "lost order: b", "lost order: c", "lost order: 2 more"}},
		},
		{
			"fewer orders in the books than the buyers can show", func(b *books, _ *told) { b.Orders, b.Units = 99, 99 },
			verdict.Judgement{Verdict: verdict.Inconsistent, Undersold: 1, Findings: []string{"buyers hold 100 orders, the books count 99"}},
		},
		{
			"a phantom order that no buyer was told of", func(_ *books, t *told) { t.Orders, t.Refused = 99, 901 },
			verdict.Judgement{Verdict: verdict.Inconsistent, Findings: []string{"1 orders that no buyer was told of; 0 buyers had no answer"}},
		},
		{
			"unknown outcomes explain orders that no buyer was told of", func(_ *books, t *told) { t.Orders, t.Refused, t.Unknown = 97, 899, 4 },
			verdict.Judgement{Verdict: verdict.Correct, Notes: []string{"3 of the 4 buyers who never had an answer have an order"}},
		},
		{
			"more such orders than unknown outcomes", func(_ *books, t *told) { t.Orders, t.Refused, t.Unknown = 95, 901, 4 },
			verdict.Judgement{Verdict: verdict.Inconsistent, Findings: []string{"5 orders that no buyer was told of; 4 buyers had no answer"}},
		},
		{
			"an unknown outcome cannot stand in for a lost order", func(b *books, t *told) {
				b.Orders, b.Units = 100, 100
				t.Orders, t.Refused, t.Unknown = 100, 899, 1
				t.Lost = []string{"o-1 of buyer-7"}
			},
			verdict.Judgement{Verdict: verdict.Inconsistent, Findings: []string{"lost order: o-1 of buyer-7"}},
		},
		{
			"one order acknowledged to two buyers", func(b *books, t *told) {
				b.Orders, b.Units = 100, 100
				t.Orders, t.Refused = 101, 899
				t.Repeated = []string{"o-1"}
			},
			verdict.Judgement{Verdict: verdict.Inconsistent, Findings: []string{"order acknowledged to several buyers: o-1"}},
		},
		// "Units of cancelled orders are not counted."
		{
			"units came back after the last buyer was refused", func(b *books, t *told) { b.Orders, b.Units = 100, 90; t.Orders, t.Cancelled = 100, 10 },
			verdict.Judgement{Verdict: verdict.Correct},
		},
		{
			"a cancelled order keeps its unit", func(_ *books, t *told) { t.Cancelled = 1 },
			verdict.Judgement{Verdict: verdict.Inconsistent, Findings: []string{"99 orders of one unit each hold 100 units"}},
		},
		{
			"more units are left than came back", func(b *books, t *told) { b.Orders, b.Units = 95, 85; t.Orders, t.Cancelled = 95, 10 },
			verdict.Judgement{Verdict: verdict.Undersold, Undersold: 5},
		},
		// "An order that was sent twice with one key is one."
		{
			"a key that brought two orders", func(_ *books, t *told) {
				t.Orders, t.Refused = 99, 901
				t.Doubled = []string{"o-1 of buyer-7, whose key brought order o-2 the second time"}
			},
			verdict.Judgement{Verdict: verdict.Inconsistent, Findings: []string{"not one order: o-1 of buyer-7, whose key brought order o-2 the second time"}},
		},
		{
			"the books disagree without an oversale", func(b *books, _ *told) { b.Differences = []string{"I5 level and ledger differ"} },
			verdict.Judgement{Verdict: verdict.Inconsistent, Findings: []string{"books: I5 level and ledger differ"}},
		},
		{
			"the books forget what was supplied", func(b *books, _ *told) { b.Supplied, b.Oversold = 90, 10 },
			verdict.Judgement{Verdict: verdict.Inconsistent, Findings: []string{"100 units were put up for sale, the books have 90"}},
		},
		{
			"the audit counts wrongly", func(b *books, _ *told) { b.Oversold = 1 },
			verdict.Judgement{Verdict: verdict.Inconsistent, Findings: []string{"the audit has 1 oversold, its own figures give 0"}},
		},
		{
			"an order that holds more than was bought", func(b *books, t *told) { b.Orders, t.Orders, t.Refused = 99, 99, 901 },
			verdict.Judgement{Verdict: verdict.Inconsistent, Findings: []string{"99 orders of one unit each hold 100 units"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, told := sound()
			tt.change(&b, &told)
			if diff := cmp.Diff(tt.want, verdict.Judge(b, told)); diff != "" {
				t.Errorf("Judge(%+v, %+v) (-want +got):\n%s", b, told, diff)
			}
		})
	}
}

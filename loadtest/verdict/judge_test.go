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
		{
			name:   "all units sold once",
			change: func(*books, *told) {},
			want:   verdict.Judgement{Verdict: verdict.Correct},
		},
		{
			name: "more units than buyers: nobody was turned away",
			change: func(b *books, t *told) {
				b.Orders, b.Units = 60, 60
				t.Orders, t.Refused = 60, 0
			},
			want: verdict.Judgement{Verdict: verdict.Correct},
		},
		{
			name: "lost updates: oversold, whatever the level says",
			change: func(b *books, t *told) {
				b.Orders, b.Units, b.Oversold = 431, 431, 331
				b.Differences = []string{"reserved 100, but open orders hold 431 units"}
				t.Orders, t.Refused = 431, 569
			},
			want: verdict.Judgement{
				Verdict:  verdict.Oversold,
				Oversold: 331,
				Findings: []string{"books: reserved 100, but open orders hold 431 units"},
			},
		},
		{
			name: "units left although buyers were refused",
			change: func(b *books, t *told) {
				b.Orders, b.Units = 95, 95
				t.Orders, t.Refused = 95, 905
			},
			want: verdict.Judgement{Verdict: verdict.Undersold, Undersold: 5},
		},
		{
			name: "units left, but fewer buyers were refused than units are left",
			change: func(b *books, t *told) {
				b.Orders, b.Units = 58, 58
				t.Orders, t.Refused = 58, 2
			},
			want: verdict.Judgement{Verdict: verdict.Undersold, Undersold: 2},
		},
		{
			name: "nobody was served: buyers who failed were turned away too",
			change: func(b *books, t *told) {
				b.Orders, b.Units = 0, 0
				t.Orders, t.Refused, t.Failed, t.Unknown = 0, 0, 40, 960
			},
			want: verdict.Judgement{Verdict: verdict.Undersold, Undersold: 100},
		},
		{
			name: "an acknowledged order is lost, its unit was sold again",
			change: func(_ *books, t *told) {
				t.Orders, t.Refused = 101, 899
				t.Lost = []string{"o-1 of buyer-7"}
			},
			want: verdict.Judgement{
				Verdict:  verdict.Inconsistent,
				Findings: []string{"lost order: o-1 of buyer-7"},
			},
		},
		{
			name: "acknowledged orders are lost with their units",
			change: func(b *books, t *told) {
				b.Orders, b.Units = 95, 95
				t.Lost = []string{"a", "b", "c", "d", "e"}
			},
			want: verdict.Judgement{
				Verdict:   verdict.Inconsistent,
				Undersold: 5,
				Findings:  []string{"lost order: a", "lost order: b", "lost order: c", "lost order: 2 more"},
			},
		},
		{
			name: "fewer orders in the books than the buyers can show",
			change: func(b *books, _ *told) {
				b.Orders, b.Units = 99, 99
			},
			want: verdict.Judgement{
				Verdict:   verdict.Inconsistent,
				Undersold: 1,
				Findings:  []string{"buyers hold 100 orders, the books count 99"},
			},
		},
		{
			name: "a phantom order that no buyer was told of",
			change: func(_ *books, t *told) {
				t.Orders, t.Refused = 99, 901
			},
			want: verdict.Judgement{
				Verdict:  verdict.Inconsistent,
				Findings: []string{"1 orders that no buyer was told of; 0 buyers had no answer"},
			},
		},
		{
			name: "unknown outcomes explain orders that no buyer was told of",
			change: func(_ *books, t *told) {
				t.Orders, t.Refused, t.Unknown = 97, 899, 4
			},
			want: verdict.Judgement{
				Verdict: verdict.Correct,
				Notes:   []string{"3 of the 4 buyers who never had an answer have an order"},
			},
		},
		{
			name: "more such orders than unknown outcomes",
			change: func(_ *books, t *told) {
				t.Orders, t.Refused, t.Unknown = 95, 901, 4
			},
			want: verdict.Judgement{
				Verdict:  verdict.Inconsistent,
				Findings: []string{"5 orders that no buyer was told of; 4 buyers had no answer"},
			},
		},
		{
			name: "an unknown outcome cannot stand in for a lost order",
			change: func(b *books, t *told) {
				b.Orders, b.Units = 100, 100
				t.Orders, t.Refused, t.Unknown = 100, 899, 1
				t.Lost = []string{"o-1 of buyer-7"}
			},
			want: verdict.Judgement{
				Verdict:  verdict.Inconsistent,
				Findings: []string{"lost order: o-1 of buyer-7"},
			},
		},
		{
			name: "one order told to two buyers",
			change: func(b *books, t *told) {
				b.Orders, b.Units = 100, 100
				t.Orders, t.Refused = 101, 899
				t.Repeated = []string{"o-1"}
			},
			want: verdict.Judgement{
				Verdict:  verdict.Inconsistent,
				Findings: []string{"order told to several buyers: o-1"},
			},
		},
		{
			// "Units of cancelled orders are not counted."
			name: "units came back after the last buyer was refused",
			change: func(b *books, t *told) {
				b.Orders, b.Units = 100, 90
				t.Orders, t.Cancelled = 100, 10
			},
			want: verdict.Judgement{Verdict: verdict.Correct},
		},
		{
			name: "a cancelled order keeps its unit",
			change: func(_ *books, t *told) {
				t.Cancelled = 1
			},
			want: verdict.Judgement{
				Verdict:  verdict.Inconsistent,
				Findings: []string{"99 orders of one unit each hold 100 units"},
			},
		},
		{
			name: "more units are left than came back",
			change: func(b *books, t *told) {
				b.Orders, b.Units = 95, 85
				t.Orders, t.Cancelled = 95, 10
			},
			want: verdict.Judgement{Verdict: verdict.Undersold, Undersold: 5},
		},
		{
			// "An order that was sent twice with one key is one."
			name: "a key that brought two orders",
			change: func(_ *books, t *told) {
				t.Orders, t.Refused = 99, 901
				t.Doubled = []string{"o-1 of buyer-7, whose key brought order o-2 the second time"}
			},
			want: verdict.Judgement{
				Verdict:  verdict.Inconsistent,
				Findings: []string{"not one order: o-1 of buyer-7, whose key brought order o-2 the second time"},
			},
		},
		{
			name: "the books disagree without an oversale",
			change: func(b *books, _ *told) {
				b.Differences = []string{"I5 level and ledger differ"}
			},
			want: verdict.Judgement{
				Verdict:  verdict.Inconsistent,
				Findings: []string{"books: I5 level and ledger differ"},
			},
		},
		{
			name: "the books forget what was supplied",
			change: func(b *books, _ *told) {
				b.Supplied, b.Oversold = 90, 10
			},
			want: verdict.Judgement{
				Verdict:  verdict.Inconsistent,
				Findings: []string{"100 units were put up for sale, the books say 90"},
			},
		},
		{
			name: "the audit reckons wrongly",
			change: func(b *books, _ *told) {
				b.Oversold = 1
			},
			want: verdict.Judgement{
				Verdict:  verdict.Inconsistent,
				Findings: []string{"the audit says 1 oversold, its own figures give 0"},
			},
		},
		{
			name: "an order that holds more than was bought",
			change: func(b *books, t *told) {
				b.Orders, t.Orders, t.Refused = 99, 99, 901
			},
			want: verdict.Judgement{
				Verdict:  verdict.Inconsistent,
				Findings: []string{"99 orders of one unit each hold 100 units"},
			},
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

package result

import (
	"cmp"
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/shopclient"
)

// told returns the log of a race, by the numbers of buyers with each outcome. Its orders are o-1, o-2 and so on.
func told(ordered, refused, failed, unknown int) (log crowd.Log) {
	for outcome, n := range [...]int{crowd.Ordered: ordered, crowd.Refused: refused, crowd.Failed: failed, crowd.Unknown: unknown} {
		for i := range n {
			r := crowd.Record{Buyer: fmt.Sprintf("buyer-%d", i+1), Outcome: crowd.Outcome(outcome)}
			if r.Outcome == crowd.Ordered {
				r.OrderID = fmt.Sprintf("o-%d", i+1)
			}
			log.Records = append(log.Records, r)
		}
	}
	return log
}

// lose is the log in which the first n orders are not there.
func lose(n int, log crowd.Log) crowd.Log {
	for i, r := range log.Records {
		if r.Outcome == crowd.Ordered && n > 0 {
			log.Records[i].Lost = "gone"
			n--
		}
	}
	return log
}

// repeat is the log in which one buyer more was told of the first order.
func repeat(log crowd.Log) crowd.Log {
	log.Records = append(log.Records, crowd.Record{Buyer: "late", Outcome: crowd.Ordered, OrderID: "o-1"})
	return log
}

// Races of 1,000 buyers for 100 units.
func TestJudge(t *testing.T) {
	t.Parallel()
	differ := func(invariant, detail, order string) []shopclient.Difference {
		return []shopclient.Difference{{Invariant: invariant, Detail: detail, OrderID: order}}
	}
	for name, c := range map[string]struct {
		orders, units, supplied int64 // in the books; 0 units: one in each order, 0 supplied: 100
		differences             []shopclient.Difference
		log                     crowd.Log
		want                    Judgement
	}{
		"all units sold once": {orders: 100, log: told(100, 900, 0, 0), want: Judgement{Verdict: Correct}},
		"more units than buyers: none was turned away": {
			orders: 60, log: told(60, 0, 0, 0), want: Judgement{Verdict: Correct},
		},
		"lost updates: oversold, whatever the level says": {
			orders: 431, differences: differ("I1", "oversold by 331", ""), log: told(431, 569, 0, 0),
			want: Judgement{Verdict: Oversold, Oversold: 331, Findings: []string{"books: I1 oversold by 331"}},
		},
		"units left although buyers were refused": {
			orders: 95, log: told(95, 905, 0, 0), want: Judgement{Verdict: Undersold, Undersold: 5},
		},
		"units left, but fewer buyers were refused than units are left": {
			orders: 58, log: told(58, 2, 0, 0), want: Judgement{Verdict: Undersold, Undersold: 2},
		},
		"no buyer was served: buyers who failed were turned away too": {
			orders: 0, log: told(0, 0, 40, 960), want: Judgement{Verdict: Undersold, Undersold: 100},
		},
		"an acknowledged order is lost, its unit was sold again": {
			orders: 100, log: lose(1, told(101, 899, 0, 0)),
			want: Judgement{Verdict: Inconsistent, Findings: []string{"lost order: o-1 of buyer-1: gone"}},
		},
		"acknowledged orders are lost with their units": {
			orders: 95, log: lose(5, told(100, 900, 0, 0)),
			want: Judgement{Verdict: Inconsistent, Undersold: 5, Findings: []string{
				"lost order: o-1 of buyer-1: gone", "lost order: o-2 of buyer-2: gone", "lost order: o-3 of buyer-3: gone", "lost order: 2 more",
			}},
		},
		"fewer orders in the books than the buyers can show": {
			orders: 99, log: told(100, 900, 0, 0),
			want: Judgement{Verdict: Inconsistent, Undersold: 1, Findings: []string{"buyers hold 100 orders, the books count 99"}},
		},
		"a phantom order that no buyer was told of": {
			orders: 100, log: told(99, 901, 0, 0),
			want: Judgement{Verdict: Inconsistent, Findings: []string{"1 orders that no buyer was told of; 0 buyers had no answer"}},
		},
		"unknown outcomes explain orders that no buyer was told of": {
			orders: 100, log: told(97, 899, 0, 4),
			want: Judgement{Verdict: Correct, Notes: []string{"3 of the 4 buyers who never had an answer have an order"}},
		},
		"more such orders than unknown outcomes": {
			orders: 100, log: told(95, 901, 0, 4),
			want: Judgement{Verdict: Inconsistent, Findings: []string{"5 orders that no buyer was told of; 4 buyers had no answer"}},
		},
		"an unknown outcome cannot stand in for a lost order": {
			orders: 100, log: lose(1, told(100, 899, 0, 1)),
			want: Judgement{Verdict: Inconsistent, Findings: []string{"lost order: o-1 of buyer-1: gone"}},
		},
		"one order acknowledged to two buyers": {
			orders: 100, log: repeat(told(100, 899, 0, 0)),
			want: Judgement{Verdict: Inconsistent, Findings: []string{"order acknowledged to several buyers: o-1"}},
		},
		"the books disagree without an oversale": {
			orders: 100, differences: differ("I5", "level and ledger differ", "o-5"), log: told(100, 900, 0, 0),
			want: Judgement{Verdict: Inconsistent, Findings: []string{"books: I5 level and ledger differ (order o-5)"}},
		},
		"the books forget what was supplied": {
			orders: 100, supplied: 90, log: told(100, 900, 0, 0),
			want: Judgement{Verdict: Inconsistent, Findings: []string{"100 units were put up for sale, the books have 90"}},
		},
		"an order that holds more than was bought": {
			orders: 99, units: 100, log: told(99, 901, 0, 0),
			want: Judgement{Verdict: Inconsistent, Findings: []string{"99 orders of one unit each hold 100 units"}},
		},
	} {
		books := shopclient.Books{Supplied: cmp.Or(c.supplied, 100), Orders: c.orders, OrderedUnits: cmp.Or(c.units, c.orders)}
		got := Judge(100, shopclient.Audit{Books: books, Differences: c.differences}, c.log)
		if diff := gocmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

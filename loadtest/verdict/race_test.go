package verdict

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/shopclient"
)

// "Added up, never one against the other", and the verdict is the worst.
func TestSum(t *testing.T) {
	t.Parallel()
	sku := func(name string, j Judgement) SKU { return SKU{SKU: name, Judgement: j} }
	fine := sku("cup", Judgement{Verdict: Correct})
	over := sku("mug", Judgement{Verdict: Oversold, Oversold: 3, Findings: []string{"I1"}})
	under := sku("pen", Judgement{Verdict: Undersold, Undersold: 5})
	odd := sku("cap", Judgement{Verdict: Inconsistent, Findings: []string{"a", "b", "c"}, Notes: []string{"n"}})
	for name, c := range map[string]struct {
		skus []SKU
		want Judgement
	}{
		"one":            {[]SKU{over}, over.Judgement},
		"all is well":    {[]SKU{fine, fine}, Judgement{Verdict: Correct}},
		"never netted":   {[]SKU{fine, over, under, over}, Judgement{Verdict: Oversold, Oversold: 6, Undersold: 5, Findings: []string{"mug: I1", "mug: I1"}}},
		"one undersold":  {[]SKU{fine, under}, Judgement{Verdict: Undersold, Undersold: 5}},
		"few are listed": {[]SKU{odd, over, fine}, Judgement{Verdict: Oversold, Oversold: 3, Findings: []string{"cap: a", "cap: b", "cap: c", "1 more"}, Notes: []string{"cap: n"}}},
	} {
		if diff := cmp.Diff(c.want, Sum(c.skus)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Each SKU has its own side. Of a refused cart it is not known which SKU was missing; any other outcome counts for all
// that are in it.
func Test_toldOf(t *testing.T) {
	t.Parallel()
	mug, cup := shopclient.Line{SKU: "mug", Units: 1}, shopclient.Line{SKU: "cup", Units: 1}
	one, cart := []shopclient.Line{mug}, []shopclient.Line{mug, cup}
	log := crowd.Log{Records: []crowd.Record{
		{Buyer: "a", Lines: cart, Outcome: crowd.Ordered, OrderID: "1"},
		{Buyer: "b", Lines: one, Outcome: crowd.Ordered, OrderID: "2"},
		{Buyer: "c", Lines: one, Outcome: crowd.Ordered, OrderID: "2"}, // acknowledged to two
		{Buyer: "d", Lines: cart, Outcome: crowd.Ordered, OrderID: "3", Lost: "the shop does not know it"},
		{Buyer: "e", Lines: one, Outcome: crowd.Ordered, OrderID: "4"},
		{Buyer: "f", Lines: one, Outcome: crowd.Refused},
		{Buyer: "g", Lines: cart, Outcome: crowd.Refused},
		{Buyer: "h", Lines: cart, Outcome: crowd.Failed},
		{Buyer: "i", Lines: cart, Outcome: crowd.Unknown},
	}}
	want := map[string]told{
		"mug": {
			orders: 5, refused: 1, failed: 1, unknown: 1,
			repeated: []string{"2"}, lost: []string{"3 of d: the shop does not know it"},
		},
		"cup": {orders: 2, failed: 1, unknown: 1, lost: []string{"3 of d: the shop does not know it"}},
	}
	for sku, side := range want {
		if diff := cmp.Diff(side, toldOf(sku, log), cmp.AllowUnexported(told{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sku, diff)
		}
	}
}

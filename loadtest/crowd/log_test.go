package crowd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/shopclient"
)

func TestLog_Summary(t *testing.T) {
	t.Parallel()
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	log := Log{Took: ms(100), Records: []Record{
		{Outcome: Ordered, Tries: 3, Latency: 0, Ended: 0},
		{Outcome: Ordered, Tries: 1, Latency: ms(1), Ended: ms(1)},
		{Outcome: Refused, Tries: 2, Latency: ms(2), Ended: ms(2)},
		{Outcome: Failed, Tries: 1, Reason: "rare", Latency: ms(40), Ended: ms(60)},
		{Outcome: Unknown, Tries: 4, Reason: "frequent", Latency: ms(60), Ended: ms(61)},
		{Outcome: Unknown, Tries: 4, Reason: "frequent", Latency: ms(50), Ended: ms(62)},
		{Outcome: Refused, Tries: 1, Latency: ms(70), Ended: ms(100)},
	}}
	got := log.Summary()
	want := Summary{
		Acknowledged: 2, Refused: 2, Errors: 3, Unknown: 2, Retries: 9, Seconds: 0.1,
		AnswersPerSecond: 40, OrdersPerSecond: 20, LatencyMS: Latency{P50: 40, P90: 70, P95: 70, P99: 70, Max: 70},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	notes := []string{
		"2 without a definite answer: frequent", "1 without a definite answer: rare",
	}
	if diff := cmp.Diff(notes, log.Notes()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	// "Rates include the answers within the time that counts; latencies, the orders that were due since that time began".
	log.Began, log.Length = ms(1), ms(50)
	if got := log.Summary(); got.Acknowledged != 2 || got.AnswersPerSecond != 40 || got.OrdersPerSecond != 20 || got.LatencyMS.P50 != 50 {
		t.Errorf("of 50 ms: got %+v, want one order and one refusal, and the waits of four", got)
	}
	if empty := (Log{}).Summary(); empty.LatencyMS != (Latency{}) || empty.AnswersPerSecond != 0 {
		t.Errorf("no orders: got %+v", empty)
	}
}

// The series have the moments of sales with the stock column after them, and the race in parts of equal length.
func TestLog_Series(t *testing.T) {
	t.Parallel()
	log := Log{Took: 3 * time.Second}
	for i := range 300 {
		r := Record{Outcome: Refused, Ended: time.Duration(i+1) * 10 * time.Millisecond}
		if r.Latency = r.Ended; i < 120 {
			wrote := int64(99)
			r.Outcome, r.Trace = Ordered, &shopclient.Trace{Seen: 100, Wrote: &wrote}
		}
		log.Records = append(log.Records, r)
	}
	log.Records[119].Trace = &shopclient.Trace{Seen: 88} // the database subtracts
	c := log.Series()
	first, last := c.Sales[0], c.Sales[len(c.Sales)-1]
	if len(c.Sales) != 61 || first.MS != 10 || first.Orders != 1 || *first.Available != 99 || last.MS != 1200 ||
		last.Orders != 120 || *last.Available != 87 {
		t.Errorf("sales: got %d, from %+v to %+v; want the first order and each second one", len(c.Sales), first, last)
	}
	if len(c.Waits) != 21 || c.Waits[10] != 1500 || c.Waits[20] != 3000 {
		t.Errorf("waits: got %v", c.Waits)
	}
	if p := c.Parts[29]; len(c.Parts) != 30 || p.EndMS != 3000 || p.AnswersPerSecond < 100 || p.AnswersPerSecond > 110 ||
		p.Latency.Max != 3000 || p.Latency.P50 < 2900 {
		t.Errorf("parts: got %d, the last %+v; want 30, and 10 answers in a tenth of a second", len(c.Parts), p)
	}
	if empty := (Log{}).Series(); len(empty.Sales)+len(empty.Waits) > 0 {
		t.Errorf("no orders: got %+v", empty)
	}
}

// traced is a log of accepted orders with these traces, answered in any order.
func traced(traces ...shopclient.Trace) Log {
	log := Log{SKU: "mug"}
	for _, i := range rand.Perm(len(traces)) {
		log.Records = append(log.Records, Record{
			Buyer: fmt.Sprintf("buyer-%d", i), Lines: []shopclient.Line{{SKU: "mug", Units: 1}}, Outcome: Ordered, Trace: &traces[i],
		})
	}
	return log
}

// A timeline shows the first two requests that read the same and wrote the same, and the requests around them.
func TestLog_timeline(t *testing.T) {
	t.Parallel()
	// wrote read the stock at a moment and wrote one unit less.
	wrote := func(at, seen int64) shopclient.Trace {
		left := seen - 1
		return shopclient.Trace{Begun: at - 1, Read: at, Seen: seen, Wrote: &left}
	}
	committed := func(at, seen int64) shopclient.Trace {
		trace := wrote(at, seen)
		trace.Committed = at + 1
		return trace
	}
	subtracted := func(at, seen int64) shopclient.Trace {
		return shopclient.Trace{Begun: at - 1, Read: at, Seen: seen}
	}
	for name, c := range map[string]struct {
		all    []shopclient.Trace
		wantAt []int64 // since the first began
		pair   []int
	}{
		"no collision": {[]shopclient.Trace{wrote(5, 10), wrote(6, 9), wrote(7, 8), wrote(8, 7), wrote(9, 6)},
			[]int64{1, 2, 3, 4}, nil},
		"the database subtracts": {[]shopclient.Trace{subtracted(5, 10), subtracted(6, 10)}, []int64{1, 2}, nil},
		"the first": {[]shopclient.Trace{wrote(5, 10), wrote(6, 10), wrote(7, 10), wrote(8, 9), wrote(9, 9)},
			[]int64{1, 2, 3, 4}, []int{0, 1}},
		"in the middle": {[]shopclient.Trace{wrote(1, 10), wrote(2, 9), wrote(3, 8), wrote(4, 7), wrote(5, 7),
			wrote(6, 6)}, []int64{1, 2, 3, 4}, []int{2, 3}},
		"far apart": {[]shopclient.Trace{wrote(1, 10), wrote(2, 9), wrote(3, 8), wrote(4, 7), wrote(5, 6),
			wrote(6, 10)}, []int64{1, 6}, []int{0, 1}},
		"a unit came back":  {[]shopclient.Trace{committed(5, 10), wrote(7, 10)}, []int64{1, 3}, nil},
		"before the commit": {[]shopclient.Trace{committed(5, 10), wrote(6, 10)}, []int64{1, 2}, []int{0, 1}},
		"at the end":        {[]shopclient.Trace{wrote(1, 10), wrote(2, 9), wrote(3, 8), wrote(4, 10)}, []int64{1, 2, 3, 4}, []int{0, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := traced(c.all...).timeline(4)
			var at []int64
			for _, r := range got.Requests {
				at = append(at, r.Read)
			}
			if !slices.Equal(at, c.wantAt) || !slices.Equal(got.Pair, c.pair) {
				t.Errorf("got requests at %v, pair %v; want %v, %v", at, got.Pair, c.wantAt, c.pair)
			}
		})
	}
	if got := (Log{Records: []Record{{Outcome: Ordered}}}).timeline(4); got != nil {
		t.Errorf("without traces: got %+v, want none", got)
	}
}

// "cart draws Least to Lines different SKUs, in the order of SKUs", "the n-th order of a buyer is the
// same in every race".
func TestRace_cart(t *testing.T) {
	t.Parallel()
	const orders = 4000
	race := Race{SKUs: []string{"a", "b", "c", "d", "e"}, Lines: 3, Skew: 1}
	for least, sizes := range [][]int{{1, 2, 3}, {1, 2, 3}, {2, 3}, {3}} {
		race.Least = least
		run, random, seen := newRun(race), rand.New(rand.NewPCG(1, 1)), map[int]int{}
		for range orders {
			cart := run.cart(random)
			seen[len(cart)]++
			for i, line := range cart {
				if line.Units != 1 || i > 0 && line.SKU <= cart[i-1].SKU {
					t.Fatalf("got %+v, want one unit of different SKUs in order", cart)
				}
			}
		}
		for _, size := range sizes {
			if share := float64(seen[size]*len(sizes)) / orders; share < 0.9 || share > 1.1 {
				t.Errorf("least %d: carts of %d: got %.2f of their share", least, size, share)
			}
		}
		if len(seen) != len(sizes) {
			t.Errorf("least %d: got carts of %v, want %v", least, seen, sizes)
		}
	}
	run := newRun(race)
	one, other := newBuyer(run, 7), newBuyer(run, 7)
	for range orders {
		if got, want := run.cart(one.random), run.cart(other.random); !slices.Equal(got, want) {
			t.Fatalf("got %+v in one race and %+v in another, want the same", want, got)
		}
	}
}

// "With 100 SKUs and a Skew of 1.1, the first SKU gets a quarter of all orders, and the first ten get two thirds."
func TestRace_cart_skew(t *testing.T) {
	t.Parallel()
	const orders = 20_000
	race := Race{Lines: 1}
	for i := range 100 {
		race.SKUs = append(race.SKUs, fmt.Sprintf("%02d", i))
	}
	for _, c := range []struct{ skew, first, ten float64 }{{0, 0.01, 0.1}, {1.1, 0.25, 0.66}} {
		race.Skew = c.skew
		run, random := newRun(race), rand.New(rand.NewPCG(1, 1))
		first, ten := 0.0, 0.0
		for range orders {
			sku := run.cart(random)[0].SKU
			if sku == "00" {
				first++
			}
			if sku < "10" {
				ten++
			}
		}
		if f, n := first/orders, ten/orders; f < 0.88*c.first || f > 1.12*c.first || n < 0.94*c.ten || n > 1.06*c.ten {
			t.Errorf("skew %v: got %.3f for the first, %.3f for ten; want %v, %v", c.skew, f, n, c.first, c.ten)
		}
	}
}

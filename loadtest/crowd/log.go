package crowd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/shopclient"
)

// Log has the results of all orders, in the order of their answers.
type Log struct {
	SKU     string        // the SKU that most buyers want
	Took    time.Duration // from the common start to the last answer
	Began   time.Duration // from the common start to the beginning of the time that counts, see Race.Duration
	Length  time.Duration // of the time that counts; 0: to the last answer
	Records []Record
}

// Record is the result of one order.
type Record struct {
	Buyer   string
	Lines   []shopclient.Line
	Outcome Outcome
	OrderID string        // of an Ordered
	Ended   time.Duration // from the common start to the last answer
	Latency time.Duration // the same, from the moment at which the order was due
	Tries   int
	Shop    int               // the number of the shop that answered last, from 1; 0 if there is only one shop
	Reason  string            // how the last try of a Failed or Unknown ended, or why an Ordered could not be paid or cancelled
	Trace   *shopclient.Trace // nil if the shop reported none

	Deadlocks int64  // deadlocks that ended transactions of its tries
	Lost      string // how the shop's order differs from the acknowledged one, see Recheck

	Cancelled bool // the buyer asked to cancel it: its units may be for sale again
}

// Outcome is the final state of an order, as its buyer knows it.
type Outcome int

// The outcomes.
const (
	Unknown Outcome = iota // no try had a definite answer: there may be an order
	Ordered                // the shop acknowledged an order
	Refused                // the shop answered that it is sold out
	Failed                 // the shop rejected the request for another reason: there is no order
)

// Summary has the figures of a log, as in the JSON of a report.
type Summary struct {
	Acknowledged     int64     `json:"acknowledged"` // orders that were answered as placed
	Refused          int64     `json:"refused"`      // orders that were answered as sold out
	Errors           int64     `json:"errors"`       // orders with another answer or none, or whose payment or cancellation had one
	Unknown          int64     `json:"unknown"`      // the errors after which there may be an order
	Retries          int64     `json:"retries"`      // requests after the first of each order, until the answer
	Deadlocks        int64     `json:"deadlocks"`    // deadlocks that ended transactions, as far as the shop reports them
	Seconds          float64   `json:"seconds"`      // from the common start to the last answer
	AnswersPerSecond float64   `json:"answers_per_second"`
	OrdersPerSecond  float64   `json:"orders_per_second"`
	LatencyMS        Latency   `json:"latency_ms"`
	Timeline         *Timeline `json:"timeline,omitempty"` // nil if the shop reports no steps
}

// Latency has the waiting times of buyers, in milliseconds since their order was due. If all order at once, every order
// is due at the common start.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Milliseconds returns d in milliseconds, to the microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Summary returns the figures of the log. Rates include the answers within the time that counts; latencies, the orders
// that were due since that time began; all other figures, the whole race.
func (l Log) Summary() Summary {
	length := cmp.Or(l.Length, l.Took)
	outcomes, within := map[Outcome]int64{}, map[Outcome]int64{} // of the whole race, and of the time that counts
	var tries, deadlocks, pending int64                          // pending: could not be paid or cancelled
	for _, r := range l.Records {
		if r.Outcome == Ordered && r.Reason != "" {
			pending++
		}
		if r.Ended >= l.Began && r.Ended <= l.Began+length {
			within[r.Outcome]++
		}
		outcomes[r.Outcome]++
		tries += int64(r.Tries)
		deadlocks += r.Deadlocks
	}
	return Summary{
		Acknowledged: outcomes[Ordered], Refused: outcomes[Refused],
		Errors: outcomes[Failed] + outcomes[Unknown] + pending, Unknown: outcomes[Unknown],
		Retries: tries - int64(len(l.Records)), Deadlocks: deadlocks, Seconds: l.Took.Round(time.Microsecond).Seconds(),
		AnswersPerSecond: rate(within[Ordered]+within[Refused], length), OrdersPerSecond: rate(within[Ordered], length),
		LatencyMS: newLatency(l.waits()), Timeline: l.timeline(12),
	}
}

// waits returns the sorted latencies of the orders that were due in the time that counts.
func (l Log) waits() (all []time.Duration) {
	for _, r := range l.Records {
		if r.Ended-r.Latency >= l.Began {
			all = append(all, r.Latency)
		}
	}
	slices.Sort(all)
	return all
}

// rate returns n per second, rounded to one digit: a rate is no more precise.
func rate(n int64, length time.Duration) float64 {
	if length <= 0 {
		return 0
	}
	return math.Round(float64(n)/length.Seconds()*10) / 10
}

func newLatency(sorted []time.Duration) Latency {
	return Latency{percentile(sorted, 50), percentile(sorted, 90), percentile(sorted, 95), percentile(sorted, 99), percentile(sorted, 100)}
}

// percentile returns the shortest duration, in milliseconds, that p percent do not exceed.
func percentile(sorted []time.Duration, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return Milliseconds(sorted[max(0, rank-1)])
}

// Notes returns the five most frequent reasons why orders, payments and cancellations failed, other than sold out.
func (l Log) Notes() []string {
	notes := []string{}
	reasons := map[string]int{}
	for _, r := range l.Records {
		if r.Reason != "" {
			reasons[r.Reason]++
		}
	}
	mostFrequent := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	})
	for i, reason := range mostFrequent {
		if i == 5 {
			return append(notes, "... and other reasons")
		}
		notes = append(notes, fmt.Sprintf("%d without a definite answer: %s", reasons[reason], reason))
	}
	return notes
}

// ErrExpired means that a race cannot be judged: the units of an expired order are for sale again, so that the number
// of units sold at the same time is unknown.
var ErrExpired = errors.New("it expired before it was checked; start the shop with a longer --pay-within")

// checkers is the number of orders that Recheck asks for at a time.
const checkers = 32

// Recheck asks for each acknowledged order, as its buyer. It sets Lost in the record of an order that the shop does not
// know, or that differs from the acknowledged order. It fails if no shop answers, or with ErrExpired.
func (r Race) Recheck(ctx context.Context, log Log) error {
	conns := shopclient.NewConnections(checkers, r.RequestTimeout)
	defer conns.CloseIdleConnections()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(checkers)
	for i := range log.Records {
		record := &log.Records[i]
		if record.Outcome != Ordered {
			continue
		}
		group.Go(func() error {
			if err := r.recheck(ctx, conns, i, record); err != nil {
				return fmt.Errorf("order %s of %s: %w", record.OrderID, record.Buyer, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// recheck asks one shop after the other for the order until one answers.
func (r Race) recheck(ctx context.Context, conns *http.Client, turn int, record *Record) (err error) {
	var a shopclient.Answer
	r.Insist(ctx, func(try int) (shopclient.Answer, error) {
		a, err = r.shop(turn+try, conns).Look(ctx, record.Buyer, record.OrderID)
		return a, err
	})
	switch o := a.Order; {
	case err != nil:
		return err
	case a.Status == http.StatusNotFound:
		record.Lost = "the shop does not know it"
	case a.Status != http.StatusOK:
		return errors.New(shopclient.Explain(a, nil))
	case o.ID != record.OrderID || !slices.Equal(o.Lines, record.Lines) || o.Status == shopclient.Cancelled:
		record.Lost = fmt.Sprintf("the shop shows %+v", o)
	case o.Status == shopclient.Expired:
		return ErrExpired
	}
	return nil
}

// Timeline has the steps of some requests of a race, as the shop reports them, in the order in which
// they read the stock.
type Timeline struct {
	Requests []Request `json:"requests"`

	// Pair has the indexes of the first two requests that read the same stock and wrote the same number, or is empty.
	Pair []int `json:"pair,omitempty"`
}

// Request is one request. Its times are in microseconds since the earliest of its Timeline; 0 for steps not taken.
type Request struct {
	Buyer    string `json:"buyer"`
	Instance int    `json:"instance,omitempty"` // of the shop, from 1; absent if there is only one
	Accepted bool   `json:"accepted"`
	shopclient.Trace
}

// timeline returns at most n requests for the most wanted SKU, around the first pair, if any; nil without traces.
func (l Log) timeline(n int) *Timeline {
	var all []Request
	for _, r := range l.Records {
		if r.Trace != nil && r.Trace.Read > 0 && r.Lines[0].SKU == l.SKU {
			all = append(all, Request{r.Buyer, r.Shop, r.Outcome == Ordered, *r.Trace})
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b Request) int { return cmp.Or(cmp.Compare(a.Read, b.Read), cmp.Compare(a.Buyer, b.Buyer)) })
	t := &Timeline{Requests: all[:min(n, len(all))]}
	if from, to, found := firstPair(all); found && to-from < n {
		begin := max(0, to-n+1, min(from-2, len(all)-n))
		t.Requests, t.Pair = all[begin:min(begin+n, len(all))], []int{from - begin, to - begin}
	} else if found {
		t.Requests, t.Pair = []Request{all[from], all[to]}, []int{0, 1}
	}
	t.Requests = slices.Clone(t.Requests)
	start := slices.MinFunc(t.Requests, func(a, b Request) int { return cmp.Compare(a.Begun, b.Begun) }).Begun
	for i := range t.Requests {
		for _, at := range t.Requests[i].Steps() {
			if *at > 0 {
				*at -= start
			}
		}
	}
	return t
}

// firstPair finds the first two requests that read the same and wrote the same.
func firstPair(byRead []Request) (from, to int, found bool) {
	first := map[int64]int{} // the request that read this number of units and wrote back
	for i, r := range byRead {
		if !r.Accepted || r.Wrote == nil {
			continue
		}
		earlier, met := first[r.Seen]
		if !met || byRead[earlier].Committed > 0 && r.Read > byRead[earlier].Committed { // the units may have come back since
			first[r.Seen] = i
		} else if *byRead[earlier].Wrote == *r.Wrote {
			return earlier, i, true
		}
	}
	return 0, 0, false
}

package crowd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"example.com/shop/loadtest/shopclient"
)

// buyer sends one order after the other and has connections of its own.
type buyer struct {
	run     *run
	number  int
	name    string
	random  *rand.Rand // the n-th order of a buyer is the same in every race
	records []Record
	conns   *http.Client
}

func newBuyer(r *run, i int) *buyer {
	return &buyer{
		run: r, number: i, name: "buyer-" + strconv.Itoa(i+1), random: rand.New(rand.NewPCG(uint64(i), 2)),
		conns: shopclient.NewBuyer(r.RequestTimeout),
	}
}

// order sends an order that was due at that moment, until there is a definite answer, the tries are used up or ctx ends.
// Each try goes to the next shop, as behind a load balancer: the one before may be gone.
func (b *buyer) order(ctx context.Context, due time.Time) {
	if n := b.run.Orders; n > 0 && len(b.records)%n == 0 { // another buyer comes
		b.name = fmt.Sprintf("%s-%d-%d", b.run.SKUs[0], b.number+1, len(b.records)/n+1)
	}
	p := shopclient.Purchase{
		Buyer: b.name, Key: fmt.Sprintf("%s/%s/%d", b.run.SKUs[0], b.name, len(b.records)+1),
		Lines: b.run.cart(b.random), Strategy: b.run.Strategy, Think: b.run.Think,
	}
	end := b.random.Float64() // drawn for each order, or the next carts would depend on the answer
	record := Record{Buyer: b.name, Lines: p.Lines, Outcome: Failed}
	var paid shopclient.Payment
	for again := true; again; {
		answer, err := b.run.shop(b.number+record.Tries, b.conns).Buy(ctx, p)
		if err != nil {
			answer.At = time.Now()
		}
		record.Tries++
		record.Latency, record.Ended = answer.At.Sub(due), answer.At.Sub(b.run.start)
		record.Reason = explain(answer, err)
		if errors.Is(err, syscall.EMFILE) || answer.Problem.Code() == "too-few-descriptors" {
			b.run.stop(fmt.Errorf("%w: %s", ErrDescriptors, record.Reason))
		}
		var outcome Outcome
		switch outcome, again = outcomeOf(answer, err); outcome {
		case Ordered, Refused:
			record.Outcome, record.Reason = outcome, ""
			record.OrderID, record.Trace = answer.Order.ID, answer.Trace
			paid = shopclient.Payment{ID: "pi-" + answer.Order.ID, OrderID: answer.Order.ID, Amount: answer.Order.Total}
		case Unknown: // only a definite answer of a later try changes that
			record.Outcome = Unknown
		case Failed:
		}
		again = again && record.Tries < b.run.Tries && shopclient.Pause(ctx, b.run.pause(record.Tries, answer.RetryAfter))
	}
	b.run.tally.add(record.Outcome)
	if record.Outcome == Ordered {
		b.end(ctx, &record, paid, end)
	}
	b.records = append(b.records, record)
	if b.run.Duration > 0 && (record.Outcome == Failed || record.Outcome == Unknown) {
		shopclient.Pause(ctx, b.run.pause(1, 0)) // a shop that fails at once is not asked without a pause
	}
}

// end pays the order, cancels it or leaves it pending, as a number from 0 to 1 has it.
func (b *buyer) end(ctx context.Context, record *Record, paid shopclient.Payment, draw float64) {
	var how string
	var answer shopclient.Answer
	var err error
	switch {
	case draw < b.run.Pay && b.run.Operators != nil:
		how = "pay"
		answer, err = b.run.shop(b.number, b.run.provider).TakePayment(ctx, paid)
	case draw < b.run.Pay:
		how = "pay"
		answer, err = b.run.shop(b.number, b.conns).Pay(ctx, b.name, record.OrderID, "")
	case draw < b.run.Pay+b.run.Cancel:
		how, record.Cancelled = "cancel", true
		answer, err = b.run.shop(b.number, b.conns).Cancel(ctx, b.name, record.OrderID, "")
	default:
		return
	}
	if err != nil || answer.Order.ID == "" {
		record.Reason = how + ": " + explain(answer, err)
	}
}

// pause returns how long to wait after a number of tries, which doubles with each, unless the shop asked for a time. Up
// to half is added at random, or all buyers that were turned away together would come back together.
func (r Race) pause(tries int, asked time.Duration) time.Duration {
	wait := min(cmp.Or(asked, firstPause<<min(tries-1, 16)), r.MaxPause)
	return wait + time.Duration(rand.Float64()*float64(wait/2))
}

const firstPause = 50 * time.Millisecond

// outcomeOf returns what one answer means to a buyer, and whether it is worth trying again.
func outcomeOf(a shopclient.Answer, err error) (o Outcome, again bool) {
	switch {
	case err != nil:
		return Unknown, true
	case a.Order.ID != "":
		return Ordered, false
	case a.Status == http.StatusConflict && a.Problem.SoldOut():
		return Refused, false
	case a.Status == http.StatusTooManyRequests:
		return Failed, true
	// Also 503: it comes from a busy shop, but as well from a load balancer that lost the shop in mid-request, or from
	// a shop that lost its database.
	case a.Status >= http.StatusInternalServerError:
		return Unknown, true
	// The first request with this key still runs, for example.
	case a.RetryAfter > 0 || a.Problem.RetrySafe:
		return Unknown, true
	}
	return Failed, false
}

// explain says in one line how a try ended.
func explain(a shopclient.Answer, err error) string {
	if err != nil {
		return shopclient.Explain(err)
	}
	return fmt.Sprintf("%d %v", a.Status, a.Problem)
}

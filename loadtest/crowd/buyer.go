package crowd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"example.com/shop/loadtest/shopclient"
)

// buyer sends one order after the other and has connections of its own.
type buyer struct {
	run     *run
	name    string
	ordered int // orders so far
	records []Record
	conns   *http.Client
	shops   []*shopclient.Client // the buyer's first choice first
}

func newBuyer(r *run, i int) *buyer {
	b := &buyer{run: r, name: "buyer-" + strconv.Itoa(i+1), conns: shopclient.NewBuyer(r.RequestTimeout)}
	for k := range r.Shops {
		b.shops = append(b.shops, shopclient.New(r.Shops[(i+k)%len(r.Shops)], b.conns))
	}
	return b
}

// order sends the order of this number, which was due at that moment, and what its buyer does with it afterwards.
func (b *buyer) order(ctx context.Context, number int64, due time.Time) {
	wanted := b.run.wanted(number)
	p := shopclient.Purchase{
		Buyer: b.name, Key: b.key(), Lines: wanted.lines, Strategy: b.run.Strategy, Think: b.run.Think,
	}
	record, answered := b.buy(ctx, p, false)
	record.Latency, record.Ended = answered.Sub(due), answered.Sub(b.run.start)
	b.run.tally.add(record.Outcome)
	if record.Outcome == Ordered && wanted.repeat {
		b.repeat(ctx, p, &record)
	}
	if record.Outcome == Ordered && wanted.cancel {
		b.cancel(ctx, &record)
	}
	b.records = append(b.records, record)
	if (record.Outcome == Failed || record.Outcome == Unknown) && b.run.Pace != (Pace{}) {
		shopclient.Pause(ctx, b.run.Retry.Base) // a shop that fails at once is not asked without a pause
	}
}

// key is a new one for each order.
func (b *buyer) key() string {
	b.ordered++
	key := b.run.SKUs[0] + "/" + b.name
	if b.ordered > 1 {
		key += "/" + strconv.Itoa(b.ordered)
	}
	return key
}

// Retry says how a buyer tries again.
type Retry struct {
	Tries int           // requests of one order, the first included
	Base  time.Duration // before the second try if the shop names no time; doubles with each further one
	Limit time.Duration // of the pause between two tries, whatever the shop asks for
}

// pause returns how long to wait after a number of tries; the shop asked for so long, if it did. Up to half is added at
// random, or all who were turned away together would come back together.
func (r Retry) pause(tries int, asked time.Duration) time.Duration {
	wait := min(cmp.Or(asked, r.Base<<min(tries-1, 16)), r.Limit)
	return wait + time.Duration(rand.Float64()*float64(wait/2))
}

// buy tries until there is a definite answer, the tries are used up or ctx ends, and returns when the last answer came.
// Each try goes to the next shop, as behind a load balancer: the one before may be gone. maybe says that there may be
// an order with this key by now.
func (b *buyer) buy(ctx context.Context, p shopclient.Purchase, maybe bool) (record Record, answered time.Time) {
	retry := b.run.Retry
	record = Record{Buyer: b.name, Lines: p.Lines}
	for {
		answer, err := b.shops[record.Tries%len(b.shops)].Buy(ctx, p)
		answered = answer.At
		if err != nil {
			answered = time.Now()
		}
		record.Tries++
		record.Reason = explain(answer, err)
		if errors.Is(err, syscall.EMFILE) || answer.Problem.Code() == "too-few-descriptors" {
			b.run.stop(fmt.Errorf("%w: %s", ErrDescriptors, record.Reason))
		}
		pause := retry.pause(record.Tries, answer.RetryAfter)
		last := record.Tries >= retry.Tries
		switch meaningOf(answer, err) {
		case placed:
			record.Outcome, record.Reason = Ordered, ""
			record.OrderID, record.Trace = answer.Order.ID, answer.Trace
			return record, answered
		case soldOut:
			record.Outcome, record.Reason, record.Trace = Refused, "", answer.Trace
			return record, answered
		case rejected:
			last = true
		case unclear:
			maybe = true
		case busy:
		}
		if last || !shopclient.Pause(ctx, pause) {
			record.Outcome = Failed
			if maybe {
				record.Outcome = Unknown
			}
			return record, answered
		}
	}
}

// repeat sends an order that was placed a second time, with the same key: as the impatient do, and programs that lost
// the answer.
func (b *buyer) repeat(ctx context.Context, p shopclient.Purchase, r *Record) {
	second, _ := b.buy(ctx, p, true)
	switch {
	case second.Outcome == Ordered && second.OrderID == r.OrderID:
		r.Repeated = true
	case second.Outcome == Ordered:
		r.Doubled = "order " + second.OrderID
	case second.Outcome == Refused:
		r.Doubled = "the answer that it is sold out"
	}
}

// cancelTries is how often a buyer tries to cancel. A shop that has oversold may refuse it for ever: fewer units are
// reserved than its orders hold.
const cancelTries = 3

// cancel ends an order.
func (b *buyer) cancel(ctx context.Context, r *Record) {
	r.CancelAsked = true
	for tries := 1; tries <= cancelTries; tries++ {
		answer, err := b.shops[tries%len(b.shops)].Cancel(ctx, b.name, r.OrderID, "")
		if err == nil && answer.Status == http.StatusOK {
			r.Cancelled = true
			return
		}
		if !shopclient.Pause(ctx, b.run.Retry.pause(tries, answer.RetryAfter)) {
			return
		}
	}
}

// meaning is what one answer means to a buyer.
type meaning int

const (
	placed   meaning = iota // there is an order
	soldOut                 // there is none and never will be
	busy                    // try again; this request placed no order
	unclear                 // try again; this request may have placed one
	rejected                // trying again is pointless
)

func meaningOf(a shopclient.Answer, err error) meaning {
	switch {
	case err != nil:
		return unclear
	case a.Order.ID != "":
		return placed
	case a.Status == http.StatusConflict && a.Problem.SoldOut():
		return soldOut
	case a.Status == http.StatusTooManyRequests:
		return busy
	// Also 503: it comes from a busy shop, but as well from a load balancer that lost the shop in mid-request, or from
	// a shop that lost its database.
	case a.Status >= http.StatusInternalServerError:
		return unclear
	// The first request with this key still runs, for example.
	case a.RetryAfter > 0 || a.Problem.RetrySafe:
		return unclear
	}
	return rejected
}

// explain says in one line how a try ended, alike for like causes: without the port numbers that make each such error a
// different text.
func explain(a shopclient.Answer, err error) string {
	var (
		timeout net.Error
		network *net.OpError
		asked   *url.Error
	)
	switch {
	case err == nil:
		return fmt.Sprintf("%d %v", a.Status, a.Problem)
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.As(err, &network):
		return network.Op + ": " + network.Err.Error()
	case errors.As(err, &asked):
		return asked.Err.Error()
	}
	return err.Error()
}

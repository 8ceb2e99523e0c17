package crowd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
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
	b := &buyer{run: r, name: "buyer-" + strconv.Itoa(i+1), conns: shopclient.NewConnections(1, r.RequestTimeout)}
	for k := range r.Shops {
		b.shops = append(b.shops, shopclient.New(r.Shops[(i+k)%len(r.Shops)], b.conns))
	}
	return b
}

// order sends the order of this number, which was due at that moment, and what its
// buyer does with it afterwards.
func (b *buyer) order(ctx context.Context, number int64, due time.Time) {
	wanted := b.run.mix.order(number)
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
	if record.Outcome == Failed && b.run.Pace != (Pace{}) {
		sleep(ctx, b.run.Retry.Base) // a shop that fails at once is not asked without a pause
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

// DefaultRetry is patient enough for a shop whose queue is a minute long.
func DefaultRetry() Retry {
	return Retry{Tries: 10, Base: 50 * time.Millisecond, Limit: 5 * time.Second}
}

// pause returns how long to wait after a number of tries. asked is what the shop asked
// for, negative if nothing. Up to half is added at random, or all who were turned away
// together would come back together.
func (r Retry) pause(tries int, asked time.Duration) time.Duration {
	wait := asked
	if wait < 0 {
		wait = r.Base << min(tries-1, 16)
	}
	wait = min(wait, r.Limit)
	return wait + time.Duration(rand.Float64()*float64(max(wait, r.Base)/2))
}

// buy tries until there is a definite answer, the tries are used up or ctx ends, and
// returns when the last answer came. Each try goes to the next shop, as behind a load
// balancer: the one before may be gone. maybe says that there may be an order with this
// key by now.
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
		pause := retry.pause(record.Tries, askedPause(answer, err))
		last := record.Tries >= retry.Tries
		switch meaningOf(answer, err) {
		case placed:
			record.Outcome, record.Reason = Ordered, ""
			record.OrderID, record.Replayed = answer.OrderID, answer.Replayed
			b.keepTrace(&record, answer.Trace)
			return record, answered
		case soldOut:
			record.Outcome, record.Reason = Refused, ""
			b.keepTrace(&record, answer.Trace)
			return record, answered
		case rejected:
			last = true
		case unclear:
			maybe = true
		case busy:
		}
		if last || !sleep(ctx, pause) {
			record.Outcome = Failed
			if maybe {
				record.Outcome = Unknown
			}
			return record, answered
		}
		b.run.tally.Retries.Add(1)
	}
}

// mostTraced bounds how many requests of a race are kept with what the shop reports
// of their steps: those that were answered first.
const mostTraced = 50_000

func (b *buyer) keepTrace(r *Record, trace *shopclient.Trace) {
	if trace != nil && b.run.traced.Add(1) <= mostTraced {
		r.Trace, r.Wanted = trace, r.Lines[0].SKU == b.run.SKUs[0]
	}
}

// repeat sends an order that was placed a second time, with the same key: as the
// impatient do, and programs that lost the answer.
func (b *buyer) repeat(ctx context.Context, p shopclient.Purchase, r *Record) {
	second, _ := b.buy(ctx, p, true)
	b.run.tally.Repeated.Add(1)
	switch {
	case second.Outcome == Ordered && second.OrderID == r.OrderID:
		r.Repeat = SameOrder
	case second.Outcome == Ordered:
		r.Repeat, r.RepeatAnswer = OtherAnswer, "order "+second.OrderID
	case second.Outcome == Refused:
		r.Repeat, r.RepeatAnswer = OtherAnswer, "the answer that it is sold out"
	default:
		r.Repeat, r.RepeatAnswer = NoAnswer, second.Reason
	}
}

// cancelTries is how often a buyer tries to cancel. A shop that has oversold may
// refuse it for ever: fewer units are reserved than its orders hold.
const cancelTries = 3

// cancel ends an order.
func (b *buyer) cancel(ctx context.Context, r *Record) {
	for tries := 1; ; tries++ {
		answer, err := b.shops[tries%len(b.shops)].Cancel(ctx, b.name, r.OrderID)
		if err == nil && answer.Status == http.StatusOK {
			b.run.tally.Cancelled.Add(1)
			r.Cancel = Cancelled
			return
		}
		final := err == nil && answer.Status < http.StatusInternalServerError && answer.RetryAfter < 0 && !answer.Problem.RetrySafe
		if final || tries == cancelTries || !sleep(ctx, b.run.Retry.pause(tries, askedPause(answer, err))) {
			r.Cancel, r.CancelAnswer = Uncancelled, explain(answer, err)
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
	case a.Status == http.StatusCreated || a.Status == http.StatusOK:
		if a.OrderID == "" {
			return unclear
		}
		return placed
	case a.Status == http.StatusConflict && a.Problem.SoldOut():
		return soldOut
	case a.Status == http.StatusTooManyRequests:
		return busy
	// Also 503: it comes from a busy shop, but as well from a load balancer that lost
	// the shop in mid-request, or from a shop that lost its database.
	case a.Status >= http.StatusInternalServerError:
		return unclear
	// The first request with this key still runs, for example.
	case a.RetryAfter >= 0 || a.Problem.RetrySafe:
		return unclear
	}
	return rejected
}

// askedPause is how long the shop asks to wait; negative if it does not ask.
func askedPause(a shopclient.Answer, err error) time.Duration {
	if err != nil {
		return -1
	}
	return a.RetryAfter
}

// explain says in one line how a try ended, alike for like causes.
func explain(a shopclient.Answer, err error) string {
	if err != nil {
		return cause(err)
	}
	if s := a.Problem.String(); s != "" {
		return fmt.Sprintf("%d %s", a.Status, s)
	}
	return fmt.Sprintf("%d without an order", a.Status)
}

// cause says why no answer came, without the port numbers and addresses that make each
// such error a different text.
func cause(err error) string {
	var (
		asked   *url.Error
		network *net.OpError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return "stopped before an answer came"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &asked) && asked.Timeout():
		return "no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "the connection broke before the answer"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the shop's port is closed"
	case errors.As(err, &network):
		return network.Op + ": " + network.Err.Error()
	}
	return err.Error()
}

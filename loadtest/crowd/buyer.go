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

// Patience is how a buyer asks again: with the same idempotency key, because an earlier request may have had its effect.
type Patience struct {
	Tries    int           // requests at most, the first included; 0: until the context ends
	Pause    time.Duration // after the first try; it doubles with each
	MaxPause time.Duration // also where the shop asks for more
}

// Insist calls ask until its answer is final, the tries are used up or ctx ends. try counts from 0.
func (p Patience) Insist(ctx context.Context, ask func(try int) (shopclient.Answer, error)) {
	for try := 0; ; try++ {
		answer, err := ask(try)
		if Final(answer, err) || try+1 == p.Tries || !shopclient.Pause(ctx, p.after(try, answer.RetryAfter)) {
			return
		}
	}
}

// Final reports whether an answer says what became of a request. Any answer with a status of 500 or more does not: it may
// come from a load balancer that lost the shop in mid-request, or from a shop that lost its database.
func Final(a shopclient.Answer, err error) bool {
	again := a.Status == http.StatusTooManyRequests || a.Status >= http.StatusInternalServerError ||
		a.RetryAfter > 0 || a.Problem.RetrySafe // the first request with this key still runs, for example
	return err == nil && !again
}

// after returns the pause after a try: the time that the shop asks for, or one that doubles with each try. Up to half is
// added at random, or all buyers that were turned away together would come back together.
func (p Patience) after(try int, asked time.Duration) time.Duration {
	wait := min(cmp.Or(asked, p.Pause<<min(try, 16)), p.MaxPause)
	return wait + time.Duration(rand.Float64()*float64(wait/2))
}

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

// order sends an order that was due at that moment. Each try goes to the next shop, as behind a load balancer: the shop of
// the try before may be gone.
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
	var placed shopclient.Order
	b.run.Insist(ctx, func(try int) (shopclient.Answer, error) {
		answer, err := b.run.shop(b.number+try, b.conns).Buy(ctx, p)
		if err != nil {
			answer.At = time.Now()
		}
		record.Tries++
		record.Latency, record.Ended = answer.At.Sub(due), answer.At.Sub(b.run.start)
		record.Reason = shopclient.Explain(answer, err)
		if errors.Is(err, syscall.EMFILE) || answer.Problem.Code() == "too-few-descriptors" {
			b.run.stop(fmt.Errorf("%w: %s", ErrDescriptors, record.Reason))
		}
		switch outcome := outcomeOf(answer, err); outcome {
		case Ordered, Refused:
			record.Outcome, record.Reason = outcome, ""
			record.OrderID, record.Trace, placed = answer.Order.ID, answer.Trace, answer.Order
		case Unknown: // only a definite answer of a later try changes that
			record.Outcome = Unknown
		case Failed:
		}
		return answer, err
	})
	b.run.Tally.add(record.Outcome)
	if record.Outcome == Ordered {
		b.end(ctx, &record, placed.Total, end)
	}
	b.records = append(b.records, record)
	if b.run.Duration > 0 && (record.Outcome == Failed || record.Outcome == Unknown) {
		shopclient.Pause(ctx, b.run.after(0, 0)) // a shop that fails at once is not asked without a pause
	}
}

// outcomeOf returns what one answer means to a buyer.
func outcomeOf(a shopclient.Answer, err error) Outcome {
	switch {
	case err != nil:
		return Unknown
	case a.Order.ID != "":
		return Ordered
	case a.Status == http.StatusConflict && a.Problem.Code() == "sold-out":
		return Refused
	case a.Status == http.StatusTooManyRequests, Final(a, nil):
		return Failed
	}
	return Unknown
}

// end pays the order, cancels it or leaves it pending, as a number from 0 to 1 has it.
func (b *buyer) end(ctx context.Context, record *Record, total shopclient.Money, draw float64) {
	var answer shopclient.Answer
	var err error
	how, id := "pay", record.OrderID
	switch {
	case draw < b.run.Pay && b.run.Operators != nil:
		payment := shopclient.Payment{ID: "pi-" + id, OrderID: id, Amount: total}
		answer, err = b.run.shop(b.number, b.run.provider).TakePayment(ctx, payment)
	case draw < b.run.Pay:
		answer, err = b.run.shop(b.number, b.conns).Pay(ctx, b.name, id, "")
	case draw < b.run.Pay+b.run.Cancel:
		how, record.Cancelled = "cancel", true
		answer, err = b.run.shop(b.number, b.conns).Cancel(ctx, b.name, id, "")
	default:
		return
	}
	if err != nil || answer.Order.ID == "" {
		record.Reason = how + ": " + shopclient.Explain(answer, err)
	}
}

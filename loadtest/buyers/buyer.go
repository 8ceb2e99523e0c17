package buyers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"example.com/shop/loadtest/shopclient"
)

// buyer sends one order after the other and has connections of its own.
type buyer struct {
	name   string
	race   Race
	wishes wishes
	bought int // orders so far
	conns  *http.Client
	shops  []*shopclient.Client // the buyer's first choice first
}

func (r Race) newBuyer(i int, w wishes) *buyer {
	b := &buyer{
		name:   "buyer-" + strconv.Itoa(i+1),
		race:   r,
		wishes: w,
		conns:  shopclient.NewConnections(1, r.RequestTimeout),
	}
	for k := range r.Shops {
		b.shops = append(b.shops, shopclient.New(r.Shops[(i+k)%len(r.Shops)], b.conns))
	}
	return b
}

// connect gives the listener a second chance, in case its queue overflowed.
func (b *buyer) connect(ctx context.Context) error {
	err := b.shops[0].Connect(ctx)
	if err != nil && sleep(ctx, b.race.Retry.pause(1, -1, rand.Float64)) {
		err = b.shops[0].Connect(ctx)
	}
	return err
}

// shop fulfils the wish of this number, which was due at that moment. What the
// answer is goes to take, which also takes what the buyer does afterwards.
func (b *buyer) shop(ctx context.Context, number int64, due time.Time, take func(Record, time.Time) func(func(*Record))) {
	w := b.wishes.of(number)
	p := shopclient.Purchase{
		Buyer: b.name, Key: b.key(), Lines: w.lines, Strategy: b.race.Strategy, Think: b.race.Think,
	}
	record := b.buy(ctx, p, false)
	answered := time.Now()
	record.Latency = answered.Sub(due)
	amend := take(record, answered)
	switch record.Outcome {
	case Ordered:
		if w.again {
			amend(b.again(ctx, p, record.OrderID))
		}
		if w.cancel {
			amend(b.cancel(ctx, record.OrderID))
		}
	case Failed:
		if b.race.Pace != (Pace{}) {
			sleep(ctx, b.race.Retry.Base) // a shop that fails at once is not asked without a pause
		}
	case Refused, Unknown:
	}
}

// key is a new one for each order.
func (b *buyer) key() string {
	b.bought++
	key := b.race.SKUs[0] + "/" + b.name
	if b.bought > 1 {
		key += "/" + strconv.Itoa(b.bought)
	}
	return key
}

// buy asks until there is a definite answer, the tries are used up or ctx ends.
// Asking again goes to the next shop, as behind a load balancer: the first one
// may be gone. maybe says that there may be an order with this key by now: then the
// first answer that it is sold out is not believed, see Retry.Doubt.
func (b *buyer) buy(ctx context.Context, p shopclient.Purchase, maybe bool) Record {
	record := Record{Buyer: b.name, Lines: p.Lines}
	ended := func(o Outcome, reason string) Record {
		record.Outcome, record.Reason = o, reason
		return record
	}
	sure := false // it was told so before, and no try since then may have bought
	for {
		answer, err := b.shops[record.Tries%len(b.shops)].Buy(ctx, p)
		record.Tries++
		reason := explain(answer, err)
		switch read(answer, err) {
		case placed:
			record.OrderID, record.Replayed = answer.OrderID, answer.Replayed
			b.trace(p, true, answer.Trace)
			return ended(Ordered, "")
		case soldOut:
			if !maybe || sure {
				b.trace(p, false, answer.Trace)
				return ended(Refused, "")
			}
			if !sleep(ctx, b.race.Retry.Doubt) {
				return ended(Unknown, cause(ctx.Err()))
			}
			sure = true
			b.race.Tally.Retries.Add(1)
			continue
		case refused:
			if maybe {
				return ended(Unknown, reason)
			}
			return ended(Failed, reason)
		case unclear:
			maybe, sure = true, false
		case busy:
		}
		if record.Tries >= b.race.Retry.Tries || !b.pause(ctx, record.Tries, answer, err) {
			if maybe {
				return ended(Unknown, reason)
			}
			return ended(Failed, reason)
		}
		b.race.Tally.Retries.Add(1)
	}
}

// pause waits before the next try, as the shop asked if it did.
func (b *buyer) pause(ctx context.Context, tries int, a shopclient.Answer, err error) bool {
	asked := a.RetryAfter
	if err != nil {
		asked = -1
	}
	return sleep(ctx, b.race.Retry.pause(tries, asked, rand.Float64))
}

// trace keeps what a request did about the most wanted SKU, of which a picture is
// made, and how it waited for its lock.
func (b *buyer) trace(p shopclient.Purchase, accepted bool, trace *shopclient.Trace) {
	b.race.Traces.add(b.name, accepted, p.Lines[0].SKU == b.race.SKUs[0], trace)
}

// explain says in one line what a try brought, alike for like causes.
func explain(a shopclient.Answer, err error) string {
	if err != nil {
		return cause(err)
	}
	if s := a.Problem.String(); s != "" {
		return fmt.Sprintf("%d %s", a.Status, s)
	}
	return fmt.Sprintf("%d without an order", a.Status)
}

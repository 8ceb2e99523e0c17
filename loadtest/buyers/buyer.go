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

// buyer wants one purchase and has connections of its own.
type buyer struct {
	name     string
	purchase shopclient.Purchase
	conns    *http.Client
	shops    []*shopclient.Client // the buyer's first choice first
	retry    Retry
	tally    *Tally
}

func (r Race) newBuyer(i int) *buyer {
	name := "buyer-" + strconv.Itoa(i+1)
	b := &buyer{
		name: name,
		purchase: shopclient.Purchase{
			Buyer:    name,
			Key:      r.SKU + "/" + name,
			SKU:      r.SKU,
			Units:    1,
			Strategy: r.Strategy,
			Think:    r.Think,
		},
		conns: shopclient.NewConnections(1, r.RequestTimeout),
		retry: r.Retry,
		tally: r.Tally,
	}
	for k := range r.Shops {
		b.shops = append(b.shops, shopclient.New(r.Shops[(i+k)%len(r.Shops)], b.conns))
	}
	return b
}

// connect gives the listener a second chance, in case its queue overflowed.
func (b *buyer) connect(ctx context.Context) error {
	err := b.shops[0].Connect(ctx)
	if err != nil && sleep(ctx, b.retry.pause(1, -1, rand.Float64)) {
		err = b.shops[0].Connect(ctx)
	}
	return err
}

// buy asks until there is a definite answer, the tries are used up or ctx ends.
// Asking again goes to the next shop, as behind a load balancer: the first one
// may be gone.
func (b *buyer) buy(ctx context.Context, start time.Time) Record {
	record := Record{Buyer: b.name}
	ended := func(o Outcome, reason string) Record {
		record.Outcome, record.Reason = o, reason
		record.Latency = time.Since(start)
		return record
	}
	maybe := false // some try may have placed an order nobody told of
	for {
		answer, err := b.shops[record.Tries%len(b.shops)].Buy(ctx, b.purchase)
		record.Tries++
		reason := explain(answer, err)
		switch read(answer, err) {
		case placed:
			record.OrderID, record.Replayed = answer.OrderID, answer.Replayed
			return ended(Ordered, "")
		case soldOut:
			return ended(Refused, "")
		case refused:
			if maybe {
				return ended(Unknown, reason)
			}
			return ended(Failed, reason)
		case unclear:
			maybe = true
		case busy:
		}
		last := record.Tries >= b.retry.Tries
		if last || !sleep(ctx, b.retry.pause(record.Tries, asked(answer, err), rand.Float64)) {
			if maybe {
				return ended(Unknown, reason)
			}
			return ended(Failed, reason)
		}
		b.tally.Retries.Add(1)
	}
}

// asked returns how long the shop asks to wait, negative if it does not.
func asked(a shopclient.Answer, err error) time.Duration {
	if err != nil {
		return -1
	}
	return a.RetryAfter
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

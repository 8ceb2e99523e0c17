package load

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// afterError keeps a buyer from spinning in front of a shop that fails at once.
const afterError = 10 * time.Millisecond

// soldOut is in the answer that is a refusal: nothing left to sell.
const soldOut = "/problems/sold-out"

// buyer is one goroutine's work and what came of it.
type buyer struct {
	load   *Load
	conn   conn
	pick   func() string
	prefix string // of its names and keys
	number int64  // of its orders

	orders, refusals int64 // in all
	timely           [2]int64
	errors, unknown  int64
	first            error
	took             []time.Duration // of each order that was sent since the clock opened
}

// buy sends one order and returns when it was answered.
func (b *buyer) buy(ctx context.Context, c *clock, sent time.Duration) time.Duration {
	b.number++
	got, err := b.conn.order(ctx, b.load.Strategy, b.prefix+strconv.FormatInt(b.number, 10), b.pick(), c.began.Add(sent+b.load.Patience))
	now := c.now()
	if err != nil && ctx.Err() != nil {
		return now // that is why
	}
	if c.opened(sent) {
		b.took = append(b.took, now-sent)
	}
	timely := c.opened(now) && !c.ended(now)
	switch {
	case err != nil:
		b.failed(err, true)
	case got.status == http.StatusCreated:
		b.orders++
		if timely {
			b.timely[0]++
		}
	case got.status == http.StatusConflict && bytes.Contains(got.body, []byte(soldOut)):
		b.refusals++
		if timely {
			b.timely[1]++
		}
	default:
		b.failed(fmt.Errorf("answer %d: %.200s", got.status, got.body), got.status >= http.StatusInternalServerError)
	}
	return now
}

// failed counts an order without the answer it should have. Unknown: there may be
// an order all the same.
func (b *buyer) failed(err error, unknown bool) {
	b.errors++
	if unknown {
		b.unknown++
	}
	if b.first == nil {
		b.first = err
	}
}

// loop buys until the clock has run. The last order is waited for.
func (b *buyer) loop(ctx context.Context, c *clock) {
	for now := c.now(); ctx.Err() == nil && !c.ended(now); {
		failed := b.errors
		now = b.buy(ctx, c, now)
		if b.number == 1 {
			c.firstAnswer(now)
		}
		if b.errors > failed {
			time.Sleep(afterError)
			now = c.now()
		}
	}
}

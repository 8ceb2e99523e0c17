package buyers

import (
	"context"
	"net/http"
	"time"

	"example.com/shop/loadtest/shopclient"
)

// Retry says how a buyer asks again.
type Retry struct {
	Tries int           // requests of one buyer, the first included
	Base  time.Duration // before the second try if the shop names no time; doubles with each further one
	Limit time.Duration // of what is waited between two tries, whatever the shop asks for
	Doubt time.Duration // before one more try, where it is told sold out and may have bought
}

// DefaultRetry is patient enough for a shop whose queue is a minute long. For a second
// (--sold-out-for), an instance may tell who has just bought on another one that
// nothing is left.
func DefaultRetry() Retry {
	return Retry{Tries: 10, Base: 50 * time.Millisecond, Limit: 5 * time.Second, Doubt: 1200 * time.Millisecond}
}

// pause returns how long to wait after a number of tries. asked is what the shop
// asked for, negative if nothing. Up to half is added at random, or all who were
// turned away together would come back together.
func (r Retry) pause(tries int, asked time.Duration, random func() float64) time.Duration {
	wait := asked
	if wait < 0 {
		wait = r.Base << min(tries-1, 16)
	}
	wait = min(wait, r.Limit)
	spread := max(wait, r.Base) / 2
	return wait + time.Duration(random()*float64(spread))
}

// reading is what one answer means to a buyer.
type reading int

const (
	placed  reading = iota // there is an order
	soldOut                // there is none and never will be
	busy                   // try again; this request placed no order
	unclear                // try again; this request may have placed one
	refused                // trying again is pointless
)

func read(a shopclient.Answer, err error) reading {
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
	// Also 503: it comes from a busy shop, but as well from a load balancer that
	// lost the shop in mid-request, or from a shop that lost its database.
	case a.Status >= http.StatusInternalServerError:
		return unclear
	// The first request with this key still runs, for example.
	case a.RetryAfter >= 0 || a.Problem.RetrySafe:
		return unclear
	}
	return refused
}

// sleep waits for d and reports whether ctx lasted as long.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

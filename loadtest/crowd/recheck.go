package crowd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/shopclient"
)

// ErrExpired means that a race cannot be judged: units of an order that expired are
// for sale again, so that the number of units sold at the same time is unknown.
var ErrExpired = errors.New("it expired before it was checked; start the shop with a longer --pay-within")

// checkers is how many orders Recheck asks for at a time.
const checkers = 32

// Recheck asks for each acknowledged order, as its buyer. In log, it notes which the shop
// does not know or shows otherwise than they were bought or cancelled (Lost), and settles
// which are Cancelled after all. It fails if the shop cannot be asked, and with ErrExpired.
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

func (r Race) recheck(ctx context.Context, conns *http.Client, i int, record *Record) error {
	o, err := r.ask(ctx, conns, i, record)
	switch {
	case errors.Is(err, shopclient.ErrNotFound):
		record.Lost = "the shop does not know it"
	case err != nil:
		return err
	case o.ID != record.OrderID || !sameLines(o.Lines, record.Lines):
		record.Lost = fmt.Sprintf("the shop shows %+v", o)
	case o.Status == shopclient.Expired && !record.Cancelled:
		return ErrExpired
	case record.CancelAsked && !record.Cancelled:
		record.Cancelled = o.Status == shopclient.Cancelled
	case record.Cancelled != (o.Status == shopclient.Cancelled):
		record.Lost = "the shop shows it as " + o.Status
	}
	return nil
}

// ask asks for an order, of one shop after the other until one answers.
func (r Race) ask(ctx context.Context, conns *http.Client, i int, record *Record) (shopclient.Order, error) {
	for tries := 1; ; tries++ {
		shop := shopclient.New(r.Shops[(i+tries)%len(r.Shops)], conns)
		o, err := shop.Order(ctx, record.Buyer, record.OrderID)
		if err == nil || errors.Is(err, shopclient.ErrNotFound) || tries >= r.Retry.Tries || !sleep(ctx, r.Retry.pause(tries, 0)) {
			return o, err
		}
	}
}

// sameLines ignores their order. They are of different SKUs.
func sameLines(a, b []shopclient.Line) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(l shopclient.Line) bool { return !slices.Contains(b, l) })
}

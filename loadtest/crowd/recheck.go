package crowd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/shopclient"
)

// Lost is an acknowledged order that the shop does not have as it was acknowledged.
type Lost struct {
	Buyer, OrderID string
	Why            string
}

// ErrExpired means that a race cannot be judged: units of an order that expired are
// for sale again, so that the number of units sold at the same time is unknown.
var ErrExpired = errors.New("it expired before it was checked; start the shop with a longer --pay-within")

// checkers is how many orders Recheck asks for at a time.
const checkers = 32

// Recheck asks for each acknowledged order, as its buyer, and returns those that the
// shop does not know or shows otherwise than they were bought or cancelled. In log, it
// settles what came of each Uncancelled: Cancelled after all, or Kept. It fails if the
// shop cannot be asked, and with ErrExpired.
func (r Race) Recheck(ctx context.Context, log Log) ([]Lost, error) {
	conns := shopclient.NewConnections(checkers, r.RequestTimeout)
	defer conns.CloseIdleConnections()

	found := make([]Lost, len(log.Records))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(checkers)
	for i := range log.Records {
		record := &log.Records[i]
		if record.Outcome != Ordered {
			continue
		}
		group.Go(func() error {
			why, err := r.recheck(ctx, conns, i, record)
			if err != nil {
				return fmt.Errorf("order %s of %s: %w", record.OrderID, record.Buyer, err)
			}
			if why != "" {
				found[i] = Lost{record.Buyer, record.OrderID, why}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(l Lost) bool { return l == Lost{} }), nil
}

// recheck says why an order is lost; empty if it is not.
func (r Race) recheck(ctx context.Context, conns *http.Client, i int, record *Record) (why string, err error) {
	o, err := r.ask(ctx, conns, i, record)
	switch {
	case errors.Is(err, shopclient.ErrNotFound):
		return "the shop does not know it", nil
	case err != nil:
		return "", err
	case o.ID != record.OrderID || !sameLines(o.Lines, record.Lines):
		return fmt.Sprintf("the shop shows %+v", o), nil
	case o.Status == shopclient.Expired && record.Cancel != Cancelled:
		return "", ErrExpired
	case record.Cancel == Uncancelled:
		record.Cancel = Kept
		if o.Status == shopclient.Cancelled {
			record.Cancel = Cancelled
		}
	case (record.Cancel == Cancelled) != (o.Status == shopclient.Cancelled):
		return "the shop shows it as " + o.Status, nil
	}
	return "", nil
}

// ask asks for an order, of one shop after the other until one answers.
func (r Race) ask(ctx context.Context, conns *http.Client, i int, record *Record) (shopclient.Order, error) {
	for tries := 1; ; tries++ {
		shop := shopclient.New(r.Shops[(i+tries)%len(r.Shops)], conns)
		o, err := shop.Order(ctx, record.Buyer, record.OrderID)
		if err == nil || errors.Is(err, shopclient.ErrNotFound) || tries >= r.Retry.Tries || !sleep(ctx, r.Retry.pause(tries, -1)) {
			return o, err
		}
	}
}

// sameLines ignores their order.
func sameLines(a, b []shopclient.Line) bool {
	bySKU := func(x, y shopclient.Line) int { return strings.Compare(x.SKU, y.SKU) }
	return slices.Equal(slices.SortedFunc(slices.Values(a), bySKU), slices.SortedFunc(slices.Values(b), bySKU))
}

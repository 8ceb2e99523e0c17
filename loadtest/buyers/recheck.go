package buyers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/shopclient"
)

// Lost is an order that a buyer was told of and that is not there.
type Lost struct {
	Buyer, OrderID string
	Why            string
}

// ErrExpired means that a race cannot be judged: units of an order that expired are
// for sale again, and nobody can tell how many were in orders at the same time.
var ErrExpired = errors.New("it expired before it was checked; start the shop with a longer --pay-within")

// checkers is how many orders Recheck asks for at a time.
const checkers = 32

// Recheck asks for each order that a buyer was told of, as that buyer, and
// returns those that the shop does not know or shows otherwise than they were
// bought or cancelled. In log, it settles what came of each Uncancelled: Cancelled
// after all, or Kept. It fails if the shop cannot be asked, and with ErrExpired.
func (r Race) Recheck(ctx context.Context, log Log) ([]Lost, error) {
	conns := shopclient.NewConnections(checkers, r.RequestTimeout)
	defer conns.CloseIdleConnections()

	found := make([]Lost, len(log.Records))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(checkers)
	for i, record := range log.Records {
		if record.Outcome != Ordered {
			continue
		}
		group.Go(func() error {
			o, err := r.ask(ctx, conns, i, record)
			switch {
			case errors.Is(err, shopclient.ErrNotFound):
				found[i] = Lost{record.Buyer, record.OrderID, "the shop does not know it"}
			case err != nil:
				return fmt.Errorf("order %s of %s: %w", record.OrderID, record.Buyer, err)
			case o.ID != record.OrderID || !sameLines(o.Lines, record.Lines):
				found[i] = Lost{record.Buyer, record.OrderID, fmt.Sprintf("the shop shows %+v", o)}
			case o.Status == shopclient.Expired && record.Cancel != Cancelled:
				return fmt.Errorf("order %s of %s: %w", record.OrderID, record.Buyer, ErrExpired)
			case record.Cancel == Uncancelled:
				log.Records[i].Cancel = Kept
				if o.Status == shopclient.Cancelled {
					log.Records[i].Cancel = Cancelled
				}
			case (record.Cancel == Cancelled) != (o.Status == shopclient.Cancelled):
				found[i] = Lost{record.Buyer, record.OrderID, "the shop shows it as " + o.Status}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(l Lost) bool { return l == Lost{} }), nil
}

// ask asks for an order, of one shop after the other until one answers.
func (r Race) ask(ctx context.Context, conns *http.Client, i int, told Record) (shopclient.Order, error) {
	for tries := 1; ; tries++ {
		shop := shopclient.New(r.Shops[(i+tries)%len(r.Shops)], conns)
		o, err := shop.Order(ctx, told.Buyer, told.OrderID)
		if err == nil || errors.Is(err, shopclient.ErrNotFound) || tries >= r.Retry.Tries {
			return o, err
		}
		if !sleep(ctx, r.Retry.pause(tries, -1, rand.Float64)) {
			return o, err
		}
	}
}

// sameLines ignores the order in which they stand.
func sameLines(a, b []shopclient.Line) bool {
	bySKU := func(x, y shopclient.Line) int { return strings.Compare(x.SKU, y.SKU) }
	return slices.Equal(slices.SortedFunc(slices.Values(a), bySKU), slices.SortedFunc(slices.Values(b), bySKU))
}

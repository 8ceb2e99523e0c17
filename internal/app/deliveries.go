package app

import (
	"context"
	"errors"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/stockstore"
)

// deliveries is the operator's stock. What was delivered can be bought at once,
// also where the SKU was sold out a moment ago.
type deliveries struct {
	*stockstore.Store
	orders *order.Service
}

// Supply is that of the Store.
func (d deliveries) Supply(ctx context.Context, delivery stock.Delivery) (after stock.SKU, replayed bool, err error) {
	after, replayed, err = d.Store.Supply(ctx, delivery)
	if err == nil || errors.Is(err, stock.ErrUnknownOutcome) {
		d.orders.Restocked(delivery.SKU)
	}
	return after, replayed, err
}

package httpapi

import (
	"context"
	"net/http"

	"example.com/shop/internal/order"
)

// placeOrder answers POST /v1/orders.
func (a *api) placeOrder(c *call) (int, any, error) {
	r := order.Request{Buyer: c.buyer, Key: c.value(headerKey)}
	var body struct {
		Lines []struct {
			SKU      string `json:"sku"`
			Quantity int64  `json:"quantity"`
		} `json:"lines"`
	}
	if err := decode(c, &body); err != nil {
		return 0, nil, err
	}
	for _, line := range body.Lines {
		r.Lines = append(r.Lines, order.RequestLine{SKU: line.SKU, Units: line.Quantity})
	}
	placed, replayed, err := a.Orders.Place(c.Request.Context(), r)
	if err != nil {
		return 0, nil, err
	}
	c.orderID, c.outcome = placed.ID, "placed"
	if replayed {
		c.outcome = "replayed"
		c.Header(headerReplayed, "true")
	}
	c.Header("Location", "/v1/orders/"+placed.ID)
	return http.StatusCreated, placed, nil
}

// payOrder answers POST /v1/orders/{id}/pay of a buyer.
func (a *api) payOrder(c *call) (int, any, error) {
	if !a.BuyersPay {
		return 0, nil, errPaidByProvider
	}
	return a.endOrder(c, a.Orders.Pay)
}

// cancelOrder answers POST /v1/orders/{id}/cancel.
func (a *api) cancelOrder(c *call) (int, any, error) { return a.endOrder(c, a.Orders.Cancel) }

// endOrder ends an order as its buyer asks. The requests take no body, and the Idempotency-Key is optional: an
// order ends once, and a repeated request for the same end returns the order.
func (a *api) endOrder(c *call, end func(context.Context, order.EndRequest) (order.Ended, error)) (int, any, error) {
	if err := decode(c, new(noBody)); err != nil {
		return 0, nil, err
	}
	ended, err := end(c.Request.Context(), order.EndRequest{Buyer: c.buyer, OrderID: c.Param("id"), Key: c.value(headerKey)})
	if err != nil {
		return 0, nil, err
	}
	c.outcome = string(ended.Status)
	if !ended.First {
		c.outcome = "replayed"
	}
	if ended.Replayed {
		c.Header(headerReplayed, "true")
	}
	return http.StatusOK, ended.Order, nil
}

// getOrder answers GET /v1/orders/{id}.
func (a *api) getOrder(c *call) (int, any, error) {
	found, err := a.Orders.Order(c.Request.Context(), c.buyer, c.Param("id"))
	return http.StatusOK, found, err
}

// listOrders answers GET /v1/orders, the latest first.
func (a *api) listOrders(c *call) (int, any, error) {
	find := func(ctx context.Context, before string, limit int) ([]order.Order, error) {
		return a.Orders.Orders(ctx, c.buyer, before, limit)
	}
	return page(c, "orders", validID, find, func(o order.Order) (string, any) { return o.ID, o })
}

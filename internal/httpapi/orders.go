package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

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
		r.Lines = append(r.Lines, order.Line{SKU: line.SKU, Units: line.Quantity})
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

func (a *api) payOrder(c *call) (int, any, error) {
	if !a.BuyersPay {
		return 0, nil, errPaidByProvider
	}
	return a.endOrder(c, a.Orders.Pay)
}

func (a *api) cancelOrder(c *call) (int, any, error) { return a.endOrder(c, a.Orders.Cancel) }

// endOrder ends an order for its buyer. The request has no body. Its Idempotency-Key is optional, because an order ends
// only once: a repeated request for the same end returns the order.
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

func (a *api) getOrder(c *call) (int, any, error) {
	found, err := a.Orders.Order(c.Request.Context(), c.buyer, c.Param("id"))
	return http.StatusOK, found, err
}

func (a *api) listOrders(c *call) (int, any, error) {
	find := func(ctx context.Context, before string, limit int) ([]order.Order, error) {
		return a.Orders.Orders(ctx, c.buyer, before, limit)
	}
	return page(c, "orders", validID, find, func(o order.Order) string { return o.ID })
}

// takePayment accepts a payment that a payment service reports. The id of the payment is the idempotency key.
func (a *api) takePayment(c *call) (int, any, error) {
	var body struct {
		PaymentID string      `json:"payment_id"`
		Amount    stock.Money `json:"amount"`
	}
	if err := decode(c, &body); err != nil {
		return 0, nil, err
	}
	c.payment = fmt.Sprintf("%.255s", body.PaymentID) // the log shows it, even if it is invalid
	ended, err := a.Orders.TakePayment(c.Request.Context(), order.Payment{
		ID: body.PaymentID, OrderID: c.Param("id"), Amount: body.Amount,
	})
	if err != nil {
		return 0, nil, err
	}
	c.outcome = "paid"
	if !ended.First {
		c.outcome = "replayed"
		c.Header(headerReplayed, "true")
	}
	return http.StatusOK, ended.Order, nil
}

func (a *api) paymentFailed(c *call) (int, any, error) {
	var body struct {
		Release bool `json:"release"`
	}
	if err := decode(c, &body); err != nil {
		return 0, nil, err
	}
	c.outcome = "noted"
	now, err := a.Orders.PaymentFailed(c.Request.Context(), c.Param("id"), body.Release)
	return http.StatusOK, now, err
}

func (a *api) extendOrder(c *call) (int, any, error) {
	if err := decode(c, new(noBody)); err != nil {
		return 0, nil, err
	}
	c.outcome = "extended"
	now, err := a.Orders.Extend(c.Request.Context(), c.Param("id"))
	return http.StatusOK, now, err
}

func (a *api) paymentRefunded(c *call) (int, any, error) {
	return a.noteRefund(c, "refunded", a.Store.Refunded)
}

func (a *api) refundFailed(c *call) (int, any, error) {
	return a.noteRefund(c, "noted", a.Store.RefundFailed)
}

// noteRefund answers with the payment. The last report counts, because a refund may fail days after it
// was reported as made.
func (a *api) noteRefund(c *call, outcome string, note func(context.Context, string) (order.Payment, error)) (int, any, error) {
	if err := decode(c, new(noBody)); err != nil {
		return 0, nil, err
	}
	c.payment, c.outcome = c.Param("payment"), outcome
	now, err := note(c.Request.Context(), c.payment)
	return http.StatusOK, now, err
}

func (a *api) listPayments(c *call) (int, any, error) {
	list := order.AllPayments
	for _, filter := range []order.PaymentList{order.RefusedPayments, order.RefundedPayments} {
		value, given := c.GetQuery(string(filter))
		if given && (value != "true" || list != order.AllPayments) {
			return 0, nil, fmt.Errorf("%w: %s %.20q: want refused=true, refunded=true, or neither", ErrMalformed, filter, value)
		}
		if given {
			list = filter
		}
	}
	find := func(ctx context.Context, after string, limit int) ([]order.Payment, error) {
		return a.Store.Payments(ctx, list, after, limit)
	}
	valid := func(id string) bool { return order.CheckPaymentID(id) == nil }
	return page(c, "payments", valid, find, func(p order.Payment) string { return p.ID })
}

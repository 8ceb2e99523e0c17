package shopclient

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Payment is what a payment provider says of an order, and what the shop has on record of it.
type Payment struct {
	ID         string    `json:"payment_id"`
	OrderID    string    `json:"order_id"`
	Amount     Money     `json:"amount"`
	Refusal    string    `json:"refusal"` // why it does not pay the order; empty if it does
	RefundedAt time.Time `json:"refunded_at"`
}

// TakePayment says, once, that the provider has taken a payment. The status is 200 if it pays the order. An error means
// that the outcome is unknown.
func (c *Client) TakePayment(ctx context.Context, p Payment) (Answer, error) {
	return c.provider(ctx, p.OrderID, "/pay", map[string]any{"payment_id": p.ID, "amount": p.Amount})
}

// PaymentFailed says that a payment has failed, and with release that the order is to be cancelled.
func (c *Client) PaymentFailed(ctx context.Context, orderID string, release bool) (Answer, error) {
	return c.provider(ctx, orderID, "/payment-failed", map[string]any{"release": release})
}

// Extend lets the order hold its units for longer.
func (c *Client) Extend(ctx context.Context, orderID string) (Answer, error) {
	return c.provider(ctx, orderID, "/extend", nil)
}

// provider sends what a payment service says, to the operator's listener.
func (c *Client) provider(ctx context.Context, orderID, what string, body any) (Answer, error) {
	header := http.Header{}
	if c.keys != nil {
		header.Set("Authorization", "Bearer "+c.keys.Payments)
	}
	r, err := c.asOperator().do(ctx, http.MethodPost, "/v1/orders/"+url.PathEscape(orderID)+what, header, body)
	if err != nil {
		return Answer{}, err
	}
	return r.order()
}

// Payments returns those that the shop has on record, or only those that it refused and that are not refunded yet.
func (c *Client) Payments(ctx context.Context, refused bool) (all []Payment, err error) {
	query := url.Values{"limit": {"100"}}
	if refused {
		query.Set("refused", "true")
	}
	for {
		var page struct {
			Payments []Payment
			Next     string `json:"next_cursor"`
		}
		if err := c.asOperator().get(ctx, http.MethodGet, "/v1/payments?"+query.Encode(), nil, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Payments...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("cursor", page.Next)
	}
}

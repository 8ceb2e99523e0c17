package shopclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"example.com/shop/internal/lab"
)

// Purchase is a request for an order.
type Purchase struct {
	Buyer    string
	Key      string        // idempotency key, the same for each request for this purchase
	Lines    []Line        // of different SKUs
	Strategy string        // for the shop to sell by
	Think    time.Duration // of the shop, between reading the stock and writing it; less than 0: the shop's own setting

	Recording string // name under which the shop records the request; empty for no recording
	Steps     bool   // the request takes each step only when Move tells it to
}

// Line is one SKU of an order, with its number of units.
type Line struct {
	SKU   string `json:"sku"`
	Units int64  `json:"quantity"`
}

// Order is an order as the shop shows it to its buyer.
type Order struct {
	ID        string    `json:"id"`
	Status    string    `json:"status"`
	Lines     []Line    `json:"lines"`
	Total     Money     `json:"total"`
	ExpiresAt time.Time `json:"expires_at"` // by the database's clock, unless the order is paid before
}

// Money is an amount, in the minor unit of its currency.
type Money struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"`
}

// Values of an order's Status, in addition to pending and paid.
const (
	Cancelled = "cancelled" // by its buyer
	Expired   = "expired"   // the order was not paid in time, and its units are for sale again
)

// Buy asks for an order.
func (c *Client) Buy(ctx context.Context, p Purchase) (Answer, error) {
	header := http.Header{"Shop-Strategy": {p.Strategy}}
	if p.Think >= 0 {
		header.Set("Shop-Think", p.Think.String())
	}
	if p.Recording != "" {
		header.Set("Shop-Recording", p.Recording)
	}
	if p.Steps {
		header.Set("Shop-Stop", "each")
	}
	return c.order(ctx, request{
		method: http.MethodPost, path: "/v1/orders", buyer: p.Buyer, key: p.Key, header: header,
		body: map[string]any{"lines": p.Lines}, sku: p.Lines[0].SKU,
	})
}

// Cancel cancels an order. The idempotency key may be empty. The status is 200 if the order is cancelled.
func (c *Client) Cancel(ctx context.Context, buyer, id, key string) (Answer, error) {
	return c.order(ctx, request{method: http.MethodPost, path: "/v1/orders/" + id + "/cancel", buyer: buyer, key: key})
}

// Look asks for an order. The status is 200 if the order is the buyer's.
func (c *Client) Look(ctx context.Context, buyer, id string) (Answer, error) {
	return c.order(ctx, request{method: http.MethodGet, path: "/v1/orders/" + id, buyer: buyer})
}

// TakePayment reports a payment. The status is 200 if the payment pays the order.
func (c *Client) TakePayment(ctx context.Context, p Payment) (Answer, error) {
	body := map[string]any{"payment_id": p.ID, "amount": p.Amount}
	return c.order(ctx, request{method: http.MethodPost, path: "/v1/orders/" + p.OrderID + "/pay", payments: true, body: body})
}

// PaymentFailed reports that a payment has failed. With release, the shop cancels the order.
func (c *Client) PaymentFailed(ctx context.Context, id string, release bool) (Answer, error) {
	body := map[string]any{"release": release}
	return c.order(ctx, request{method: http.MethodPost, path: "/v1/orders/" + id + "/payment-failed", payments: true, body: body})
}

// Extend lets the order hold its units for longer.
func (c *Client) Extend(ctx context.Context, id string) (Answer, error) {
	return c.order(ctx, request{method: http.MethodPost, path: "/v1/orders/" + id + "/extend", payments: true})
}

// order sends a request that is answered by an order.
func (c *Client) order(ctx context.Context, q request) (Answer, error) {
	var o Order
	a, err := c.do(ctx, q, &o)
	a.Order = o
	return a, err
}

// Trace has the times of a request's steps, in microseconds by the shop's clock: 0 for a step that the request did not
// take, and the last time of a repeated step. It is about the SKU of the order's first line.
type Trace struct {
	Seen  int64  `json:"seen"`            // units that the request read as available
	Wrote *int64 `json:"wrote,omitempty"` // units that the request wrote back; absent if the database subtracts

	Deadlocks int64 `json:"deadlocks,omitempty"` // by which the database has ended its transactions, before the last

	Begun     int64 `json:"begun_us"`
	LockAsked int64 `json:"lock_asked_us,omitempty"`
	LockHeld  int64 `json:"lock_held_us,omitempty"`
	Read      int64 `json:"read_us"`
	Writing   int64 `json:"writing_us,omitempty"` // its transaction begins
	Written   int64 `json:"written_us,omitempty"`
	Committed int64 `json:"committed_us,omitempty"`
	Released  int64 `json:"released_us,omitempty"`
}

// Steps returns the times of a trace by the shop's names of the steps.
func (t *Trace) Steps() map[string]*int64 {
	return map[string]*int64{
		"begun": &t.Begun, "lock-asked": &t.LockAsked, "lock-held": &t.LockHeld, "read": &t.Read,
		"writing": &t.Writing, "written": &t.Written, "committed": &t.Committed, "released": &t.Released,
	}
}

// parseTrace reads a Shop-Trace header. It returns nil if there is no header, or if both the read and the commit are
// missing. Traces are for pictures, so that an incomplete trace is not an error.
func parseTrace(header, sku string) *Trace {
	var t Trace
	var taken []lab.Taken
	if json.Unmarshal([]byte(header), &taken) != nil {
		return nil
	}
	steps := t.Steps()
	for _, s := range taken {
		if s.SKU != "" && s.SKU != sku {
			continue
		}
		if at := steps[s.Step]; at != nil {
			*at = s.At
		}
		switch {
		case s.Units == nil:
		case s.Step == "read":
			t.Seen = *s.Units
		case s.Step == "written":
			t.Wrote = s.Units
		case s.Step == "deadlock":
			t.Deadlocks = *s.Units
		}
	}
	if t.Begun == 0 || t.Read == 0 && t.Committed == 0 {
		return nil
	}
	return &t
}

// Payment is a payment of an order, as the payment provider reports it.
type Payment struct {
	ID      string `json:"payment_id"`
	OrderID string `json:"order_id"`
	Amount  Money  `json:"amount"`
}

// Refused returns the payments that the shop has refused and that are not refunded yet.
func (c *Client) Refused(ctx context.Context) (all []Payment, err error) {
	query := url.Values{"limit": {"100"}, "refused": {"true"}}
	for {
		var page struct {
			Payments []Payment
			Next     string `json:"next_cursor"`
		}
		if err := c.get(ctx, request{method: http.MethodGet, path: "/v1/payments?" + query.Encode(), listener: true}, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Payments...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("cursor", page.Next)
	}
}

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
	Key      string        // idempotency key, the same whenever this purchase is asked for again
	Lines    []Line        // of different SKUs
	Strategy string        // how the shop is to sell
	Think    time.Duration // between its reading the stock and writing it; less than 0: what the shop is set to

	Recording string // the name under which the shop is to record the request; empty for none
	Steps     bool   // it takes each step only when Move says so
}

// Line is one SKU of an order and how many units of it.
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
	ExpiresAt time.Time `json:"expires_at"` // if it is not paid before, by the database's clock
}

// Money is an amount, in the minor unit of its currency.
type Money struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"`
}

// What the Status of an order can be, besides pending and paid.
const (
	Cancelled = "cancelled" // by its buyer
	Expired   = "expired"   // it was not paid in time, and its units are for sale again
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

// Cancel asks for the end of an order, with an idempotency key unless that is empty. The status is 200 if it was cancelled.
func (c *Client) Cancel(ctx context.Context, buyer, id, key string) (Answer, error) {
	return c.order(ctx, request{method: http.MethodPost, path: "/v1/orders/" + id + "/cancel", buyer: buyer, key: key})
}

// Pay is Cancel for an order that is to be paid on the buyer's own word, which only some shops take.
func (c *Client) Pay(ctx context.Context, buyer, id, key string) (Answer, error) {
	return c.order(ctx, request{method: http.MethodPost, path: "/v1/orders/" + id + "/pay", buyer: buyer, key: key})
}

// Look asks for an order. The status is 200 if it is the buyer's.
func (c *Client) Look(ctx context.Context, buyer, id string) (Answer, error) {
	return c.order(ctx, request{method: http.MethodGet, path: "/v1/orders/" + id, buyer: buyer})
}

// TakePayment says that the provider has taken a payment. The status is 200 if it pays the order.
func (c *Client) TakePayment(ctx context.Context, p Payment) (Answer, error) {
	body := map[string]any{"payment_id": p.ID, "amount": p.Amount}
	return c.order(ctx, request{method: http.MethodPost, path: "/v1/orders/" + p.OrderID + "/pay", payments: true, body: body})
}

// PaymentFailed says that a payment has failed, and with release that the order is to be cancelled.
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

// Trace is when a request took which step, in microseconds by the shop's clock; 0 for steps that it did not take, the
// last time for repeated ones. It is about the SKU of the order's first line.
type Trace struct {
	Seen  int64  `json:"seen"`            // units that it read as available
	Wrote *int64 `json:"wrote,omitempty"` // units that it wrote back; absent where the database subtracts

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

// Steps are the moments of a trace by the names that the shop gives them.
func (t *Trace) Steps() map[string]*int64 {
	return map[string]*int64{
		"begun": &t.Begun, "lock-asked": &t.LockAsked, "lock-held": &t.LockHeld, "read": &t.Read,
		"writing": &t.Writing, "written": &t.Written, "committed": &t.Committed, "released": &t.Released,
	}
}

// parseTrace reads a Shop-Trace header. It returns nil if there is none or if it lacks both the read and the commit:
// traces are for pictures, an odd one is no error.
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

// Payment is what a payment provider says of an order.
type Payment struct {
	ID      string `json:"payment_id"`
	OrderID string `json:"order_id"`
	Amount  Money  `json:"amount"`
}

// Refused returns the payments that the shop has on record as refused and that are not refunded yet.
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

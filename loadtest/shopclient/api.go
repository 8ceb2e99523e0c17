package shopclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
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

	// Recording is the name under which the shop records the request, which takes each step only after a call
	// of Move. It is empty for no recording.
	Recording string
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
	_ = json.Unmarshal([]byte(header), &taken) // otherwise, no steps were taken
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

// Strategy is a way to sell, as the shop's table describes it.
type Strategy = lab.Offer

// Pick returns the strategies with these names, in the order of the names, each once. The error
// explains an invalid name.
func Pick(table []Strategy, names []string) (chosen []Strategy, err error) {
	for _, name := range names {
		found, err := lab.Find(table, strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(chosen, func(s Strategy) bool { return s.Name == found.Name }) {
			chosen = append(chosen, found)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("choose at least one")
	}
	return chosen, nil
}

// Books are the result of the shop's audit for one SKU.
type Books struct {
	SKU          string `json:"sku"`
	Supplied     int64  `json:"supplied"`
	Orders       int64  `json:"orders"`        // including cancelled orders
	OrderedUnits int64  `json:"ordered_units"` // without cancelled orders

	// The stock row, which a wrong strategy may have corrupted.
	Available int64 `json:"available"`
	Reserved  int64 `json:"reserved"`
	Sold      int64 `json:"sold"`
}

// Difference is a contradiction in the shop's books.
type Difference struct {
	Invariant string `json:"invariant"`
	SKU       string `json:"sku"`
	OrderID   string `json:"order_id"`
	Detail    string `json:"detail"`
}

// Audit is the shop's own check of its books for one SKU or, without Books, for all SKUs.
type Audit struct {
	OK          bool
	Books       Books
	SKUs        []Books
	Differences []Difference
}

// Lab is a teaching shop's description of itself.
type Lab struct {
	Strategies []Strategy `json:"strategies"`
	Database   string     `json:"database"` // name and version
	Redis      string     `json:"redis"`
}

// Lab returns the shop's table of strategies and its servers. It fails if the server is not a teaching
// shop, or not a shop.
func (c *Client) Lab(ctx context.Context) (l Lab, err error) {
	err = c.get(ctx, request{method: http.MethodGet, path: "/v1/strategies"}, &l)
	if errors.Is(err, ErrNotFound) || err == nil && len(l.Strategies) == 0 {
		err = errors.New("it is not a teaching shop")
	}
	return l, err
}

// Create puts units of a new SKU up for sale.
func (c *Client) Create(ctx context.Context, sku string, units int64) error {
	body := map[string]any{"sku": sku, "units": units, "price": Money{Minor: 100, Currency: "EUR"}}
	return c.get(ctx, request{method: http.MethodPost, path: "/v1/skus", listener: true, body: body}, nil)
}

// Limit sets the number of units of a SKU that a buyer may have in pending and paid orders.
func (c *Client) Limit(ctx context.Context, sku string, units int64) error {
	body := map[string]any{"limit_per_buyer": units}
	return c.get(ctx, request{method: http.MethodPatch, path: "/v1/skus/" + sku, listener: true, body: body}, nil)
}

// Restock brings in units of a SKU, once for the key of a delivery. The status is 201 if it succeeds.
func (c *Client) Restock(ctx context.Context, sku, key string, units int64) (Answer, error) {
	body := map[string]any{"kind": "supply", "units": units}
	q := request{method: http.MethodPost, path: "/v1/skus/" + sku + "/movements", listener: true, key: key, body: body}
	return c.do(ctx, q, nil)
}

// Ready returns nil if the shop is ready to sell.
func (c *Client) Ready(ctx context.Context) error {
	return c.get(ctx, request{method: http.MethodGet, path: "/readyz"}, nil)
}

// Stock returns the available and the reserved units of a SKU.
func (c *Client) Stock(ctx context.Context, sku string) (available, reserved int64, err error) {
	var level struct{ Available, Reserved int64 }
	err = c.get(ctx, request{method: http.MethodGet, path: "/v1/skus/" + sku}, &level)
	return level.Available, level.Reserved, err
}

// Audit returns the shop's check of its books for one SKU or, for an empty name, for all.
func (c *Client) Audit(ctx context.Context, sku string) (a Audit, err error) {
	path := "/v1/audit"
	if sku != "" {
		path += "?sku=" + sku
	}
	err = c.get(ctx, request{method: http.MethodGet, path: path, listener: true}, &a)
	if len(a.SKUs) == 1 {
		a.Books = a.SKUs[0]
	}
	return a, err
}

// Recording returns the recording with this name as soon as its version is higher than seen, or after a while as it is.
// ErrNotFound: there is no recording yet.
func (c *Client) Recording(ctx context.Context, name string, seen int) (r lab.Recording, err error) {
	err = c.get(ctx, request{method: http.MethodGet, path: fmt.Sprintf("/v1/recordings/%s?seen=%d", name, seen)}, &r)
	return r, err
}

// Lock returns the holder of the lock that the recorded request has asked for last. Some stores cannot tell: an error.
func (c *Client) Lock(ctx context.Context, name string) (s lab.LockState, err error) {
	err = c.get(ctx, request{method: http.MethodGet, path: "/v1/recordings/" + name + "/lock"}, &s)
	return s, err
}

// Move makes a move with the request that is recorded under this name.
func (c *Client) Move(ctx context.Context, move lab.Move, name string) (r lab.Recording, err error) {
	err = c.get(ctx, request{method: http.MethodPost, path: "/v1/recordings/" + name + "/" + string(move)}, &r)
	return r, err
}

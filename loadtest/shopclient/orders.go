package shopclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
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

// Answer is the shop's answer to a purchase or a cancellation.
type Answer struct {
	At         time.Time // when its last byte had come
	Status     int
	Order      Order         // if it was placed
	Problem    Problem       // why no order was placed
	RetryAfter time.Duration // how long the shop asks to wait before the next try; 0 if it does not ask
	Trace      *Trace        // when the request took which step; nil if the shop does not report it
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

// Buy asks for an order, once. An error means that the outcome is unknown.
func (c *Client) Buy(ctx context.Context, p Purchase) (Answer, error) {
	header := http.Header{
		"Idempotency-Key": {p.Key},
		"Shop-Buyer":      {p.Buyer},
		"Shop-Strategy":   {p.Strategy},
	}
	if p.Think >= 0 {
		header["Shop-Think"] = []string{p.Think.String()}
	}
	if p.Recording != "" {
		header["Shop-Recording"] = []string{p.Recording}
	}
	if p.Steps {
		header["Shop-Stop"] = []string{"each"}
	}
	r, err := c.do(ctx, http.MethodPost, "/v1/orders", header, map[string]any{"lines": p.Lines})
	if err != nil {
		return Answer{}, err
	}
	a, err := r.order()
	a.Trace = parseTrace(r.header.Get("Shop-Trace"), p.Lines[0].SKU)
	return a, err
}

// Cancel asks for the end of an order, once, with an idempotency key unless that is empty. The status is 200 if it was
// cancelled. An error means that the outcome is unknown.
func (c *Client) Cancel(ctx context.Context, buyer, id, key string) (Answer, error) {
	return c.ask(ctx, http.MethodPost, buyer, id, "/cancel", key)
}

// Pay is Cancel for an order that is to be paid on the buyer's own word, which only some shops take.
func (c *Client) Pay(ctx context.Context, buyer, id, key string) (Answer, error) {
	return c.ask(ctx, http.MethodPost, buyer, id, "/pay", key)
}

// Look asks for an order. The status is 200 if it is the buyer's.
func (c *Client) Look(ctx context.Context, buyer, id string) (Answer, error) {
	return c.ask(ctx, http.MethodGet, buyer, id, "", "")
}

func (c *Client) ask(ctx context.Context, method, buyer, id, how, key string) (Answer, error) {
	header := http.Header{"Shop-Buyer": {buyer}}
	if key != "" {
		header["Idempotency-Key"] = []string{key}
	}
	r, err := c.do(ctx, method, "/v1/orders/"+url.PathEscape(id)+how, header, nil)
	if err != nil {
		return Answer{}, err
	}
	return r.order()
}

// order returns an answer with its order, unless that was refused.
func (r response) order() (Answer, error) {
	a := r.answer()
	if !r.good() {
		return a, nil
	}
	if err := json.Unmarshal(r.body, &a.Order); err != nil {
		return Answer{}, fmt.Errorf("answer %d without an order: %w", r.status, err)
	}
	return a, nil
}

func (r response) answer() Answer {
	seconds, _ := strconv.Atoi(r.header.Get("Retry-After")) // shops send no dates
	a := Answer{At: r.at, Status: r.status, RetryAfter: time.Duration(seconds) * time.Second}
	if !r.good() {
		a.Problem = r.problem()
	}
	return a
}

// Trace is when a request took which step, in microseconds by the shop's clock; 0 for steps that it did not take, the
// last time for repeated ones. It is about the SKU of the order's first line.
type Trace struct {
	Seen  int64  `json:"seen"`            // units that it read as available
	Wrote *int64 `json:"wrote,omitempty"` // units that it wrote back; absent where the database subtracts

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
	steps := t.Steps()
	for step := range strings.SplitSeq(header, ",") {
		name, rest, _ := strings.Cut(strings.TrimSpace(step), ";")
		at, known := steps[name]
		if !known {
			continue
		}
		parameters := map[string]string{}
		for parameter := range strings.SplitSeq(rest, ";") {
			key, value, _ := strings.Cut(parameter, "=")
			parameters[key] = value
		}
		if of := parameters["sku"]; of != "" && of != sku {
			continue // of another line
		}
		if n, err := strconv.ParseInt(parameters["at"], 10, 64); err == nil {
			*at = n
		}
		if units, err := strconv.ParseInt(parameters["units"], 10, 64); err == nil {
			switch name {
			case "read":
				t.Seen = units
			case "written":
				t.Wrote = &units
			}
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

// Refused returns the payments that the shop has on record as refused and that are not refunded yet.
func (c *Client) Refused(ctx context.Context) (all []Payment, err error) {
	query := url.Values{"limit": {"100"}, "refused": {"true"}}
	for {
		var page struct {
			Payments []Payment
			Next     string `json:"next_cursor"`
		}
		if err := c.asOperator().get(ctx, http.MethodGet, "/v1/payments?"+query.Encode(), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Payments...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("cursor", page.Next)
	}
}

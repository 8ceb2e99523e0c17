package shopclient

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Purchase is a buyer's wish.
type Purchase struct {
	Buyer    string
	Key      string // idempotency key, the same whenever this purchase is asked for again
	SKU      string
	Units    int64
	Strategy string        // how the shop is to sell
	Think    time.Duration // between its reading the stock and writing it
}

// Answer is what the shop said.
type Answer struct {
	Status   int
	OrderID  string // of the order, if it was placed
	Replayed bool   // the order was placed by an earlier request with the same key

	// Problem is why no order was placed.
	Problem Problem

	// RetryAfter is how long the shop asks to wait before the next try; negative
	// if it does not ask.
	RetryAfter time.Duration
}

// Line is one SKU of an order and how many units of it.
type Line struct {
	SKU   string `json:"sku"`
	Units int64  `json:"quantity"`
}

// Order is an order as the shop shows it to its buyer.
type Order struct {
	ID    string `json:"id"`
	Lines []Line `json:"lines"`
}

// Buy asks for an order, once. An error means that the outcome is unknown.
func (c *Client) Buy(ctx context.Context, p Purchase) (Answer, error) {
	header := http.Header{
		"Idempotency-Key": {p.Key},
		"Shop-Buyer":      {p.Buyer},
		"Shop-Strategy":   {p.Strategy},
		// Zero would leave it to the shop.
		"Shop-Think": {max(p.Think, time.Nanosecond).String()},
	}
	body := struct {
		Lines []Line `json:"lines"`
	}{[]Line{{SKU: p.SKU, Units: p.Units}}}
	r, err := c.do(ctx, http.MethodPost, "/v1/orders", header, body)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{
		Status:     r.status,
		Replayed:   r.header.Get("Idempotent-Replayed") == "true",
		RetryAfter: retryAfter(r.header.Get("Retry-After")),
	}
	if r.status != http.StatusCreated && r.status != http.StatusOK {
		a.Problem = r.problem()
		return a, nil
	}
	var o Order
	if err := r.decode(r.status, &o); err != nil {
		return Answer{}, err
	}
	a.OrderID = o.ID
	return a, nil
}

// Order returns the buyer's order with this id, or ErrNotFound.
func (c *Client) Order(ctx context.Context, buyer, id string) (Order, error) {
	header := http.Header{"Shop-Buyer": {buyer}}
	path := "/v1/orders/" + url.PathEscape(id)
	r, err := c.do(ctx, http.MethodGet, path, header, nil)
	if err != nil {
		return Order{}, err
	}
	if r.status == http.StatusNotFound {
		return Order{}, ErrNotFound
	}
	var o Order
	err = r.decode(http.StatusOK, &o)
	return o, err
}

// retryAfter reads the header of that name, in seconds. A date is not used by
// shops and is taken for none.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds < 0 {
		return -1
	}
	return time.Duration(seconds) * time.Second
}

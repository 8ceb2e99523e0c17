package shopclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"example.com/shop/internal/lab"
)

// Strategy is a way to sell, as the shop's table of them describes it.
type Strategy struct {
	Name      string `json:"name"`
	Lock      string `json:"lock"`
	LockEnds  string `json:"lock_ends"` // what ends it where its holder does not: process, lease, ttl, late or never; empty without a lock
	Take      string `json:"take"`
	Designed  bool   `json:"designed"`
	Lesson    string `json:"lesson"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"` // why it is not
}

// Pick returns the strategies of these names, in their order and each once. The error says what is wrong with a name.
func Pick(table []Strategy, names []string) (chosen []Strategy, err error) {
	var known, seen []string
	for _, s := range table {
		known = append(known, s.Name)
	}
	for _, name := range names {
		name = strings.TrimSpace(name)
		switch at := slices.Index(known, name); {
		case at < 0:
			return nil, fmt.Errorf("%.80q is not one of %s", name, strings.Join(known, ", "))
		case !table[at].Available:
			return nil, fmt.Errorf("%s cannot be run: %s", name, table[at].Reason)
		case !slices.Contains(seen, name):
			chosen, seen = append(chosen, table[at]), append(seen, name)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("choose at least one")
	}
	return chosen, nil
}

// Books are what the shop's audit says about one SKU.
type Books struct {
	SKU          string `json:"sku"`
	Supplied     int64  `json:"supplied"`
	Orders       int64  `json:"orders"`        // cancelled ones too
	OrderedUnits int64  `json:"ordered_units"` // cancelled orders left out

	// The stock row, which a wrong strategy may have got wrong.
	Available int64 `json:"available"`
	Reserved  int64 `json:"reserved"`
	Sold      int64 `json:"sold"`
}

// Difference is a place where the shop's books disagree.
type Difference struct {
	Invariant string `json:"invariant"`
	SKU       string `json:"sku"`
	OrderID   string `json:"order_id"`
	Detail    string `json:"detail"`
}

// Audit is the shop's own check of its books for one SKU, or for all, and then without Books.
type Audit struct {
	OK          bool
	Books       Books
	Differences []Difference
}

// Lab is what a teaching shop says of itself.
type Lab struct {
	Strategies []Strategy `json:"strategies"`
	Database   string     `json:"database"` // name and version
	Redis      string     `json:"redis"`
}

// Lab returns the shop's table of strategies and its servers, or ErrNotLab.
func (c *Client) Lab(ctx context.Context) (about Lab, err error) {
	err = c.get(ctx, http.MethodGet, "/v1/strategies", nil, &about)
	if errors.Is(err, ErrNotFound) || err == nil && len(about.Strategies) == 0 {
		err = ErrNotLab
	}
	return about, err
}

// Create puts units of a new SKU up for sale.
func (c *Client) Create(ctx context.Context, sku string, units int64) error {
	body := map[string]any{"sku": sku, "units": units, "price": map[string]any{"minor": 100, "currency": "EUR"}}
	return c.asOperator().get(ctx, http.MethodPost, "/v1/skus", body, nil)
}

// Limit sets how many units of a SKU a buyer may have in orders that are pending or paid.
func (c *Client) Limit(ctx context.Context, sku string, units int64) error {
	return c.asOperator().get(ctx, http.MethodPatch, "/v1/skus/"+url.PathEscape(sku), map[string]any{"limit_per_buyer": units}, nil)
}

// Restock brings units of a SKU in, once. The key is the delivery's, the same whenever it is asked for again. The status is
// 201 if they are there. An error means that the outcome is unknown.
func (c *Client) Restock(ctx context.Context, sku, key string, units int64) (Answer, error) {
	body := map[string]any{"kind": "supply", "units": units}
	r, err := c.asOperator().do(ctx, http.MethodPost, "/v1/skus/"+url.PathEscape(sku)+"/movements", http.Header{"Idempotency-Key": {key}}, body)
	if err != nil {
		return Answer{}, err
	}
	return r.answer(), nil
}

// Ready returns nil if the shop is ready to sell.
func (c *Client) Ready(ctx context.Context) error {
	return c.get(ctx, http.MethodGet, "/readyz", nil, nil)
}

// Stock returns how many units of a SKU are available and reserved.
func (c *Client) Stock(ctx context.Context, sku string) (available, reserved int64, err error) {
	var level struct{ Available, Reserved int64 }
	err = c.get(ctx, http.MethodGet, "/v1/skus/"+url.PathEscape(sku), nil, &level)
	return level.Available, level.Reserved, err
}

// Audit returns the shop's check of its books for one SKU or, for an empty name, for all.
func (c *Client) Audit(ctx context.Context, sku string) (Audit, error) {
	var a struct {
		OK          bool
		SKUs        []Books
		Differences []Difference
	}
	path := "/v1/audit"
	if sku != "" {
		path += "?sku=" + url.QueryEscape(sku)
	}
	audit := Audit{}
	err := c.asOperator().get(ctx, http.MethodGet, path, nil, &a)
	if audit.OK, audit.Differences = a.OK, a.Differences; len(a.SKUs) == 1 {
		audit.Books = a.SKUs[0]
	}
	return audit, err
}

// Recording returns what was recorded under a name as soon as its version is higher than seen, or after a while as it is.
// ErrNotFound: nothing was, by now.
func (c *Client) Recording(ctx context.Context, name string, seen int) (r lab.Recording, err error) {
	err = c.get(ctx, http.MethodGet, "/v1/recordings/"+url.PathEscape(name)+"?seen="+strconv.Itoa(seen), nil, &r)
	return r, err
}

// Lock returns who has the lock that the recorded request has asked for last. The error may say that the store does not
// know.
func (c *Client) Lock(ctx context.Context, name string) (s lab.LockState, err error) {
	err = c.get(ctx, http.MethodGet, "/v1/recordings/"+url.PathEscape(name)+"/lock", nil, &s)
	return s, err
}

// Move makes a move with the request that is recorded under this name.
func (c *Client) Move(ctx context.Context, move lab.Move, name string) (r lab.Recording, err error) {
	err = c.get(ctx, http.MethodPost, "/v1/recordings/"+url.PathEscape(name)+"/"+string(move), nil, &r)
	return r, err
}

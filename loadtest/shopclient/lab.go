package shopclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"example.com/shop/internal/lab"
)

// Strategy is a way to sell, as the shop's table describes it.
type Strategy = lab.Offer

// Pick returns the strategies with these names, in the order of the names, each once. The error explains an invalid name.
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

// Lab returns the shop's table of strategies and its servers. It fails if the server is not a teaching shop, or not a shop.
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

package shopclient

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// Strategy is a way to sell, as the shop's table of them describes it.
type Strategy struct {
	Name            string `json:"name"`
	Lock            string `json:"lock"`
	Take            string `json:"take"`
	PromisesCorrect bool   `json:"promises_correct"`
	Lesson          string `json:"lesson"`
	Available       bool   `json:"available"`
	Reason          string `json:"reason"` // why it is not
}

// Books are what the shop's audit says about one SKU.
type Books struct {
	SKU          string `json:"sku"`
	Supplied     int64  `json:"supplied"`
	Orders       int64  `json:"orders"`
	OrderedUnits int64  `json:"ordered_units"`
	Oversold     int64  `json:"oversold"`
}

// Difference is a place where the shop's books disagree.
type Difference struct {
	Invariant string `json:"invariant"`
	OrderID   string `json:"order_id"`
	Detail    string `json:"detail"`
}

// Audit is the shop's own check of its books for one SKU.
type Audit struct {
	OK          bool
	Books       Books
	Differences []Difference
}

// books are the JSON of an audit.
type books struct {
	OK          bool         `json:"ok"`
	SKUs        []Books      `json:"skus"`
	Differences []Difference `json:"differences"`
}

// Lab is what a shop in teaching mode says of itself.
type Lab struct {
	Strategies []Strategy `json:"strategies"`
	Database   string     `json:"database"` // name and version
	Redis      string     `json:"redis"`
}

// Lab returns the shop's table of strategies and its servers, or ErrNotLab.
func (c *Client) Lab(ctx context.Context) (Lab, error) {
	const path = "/v1/strategies"
	r, err := c.do(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return Lab{}, err
	}
	if r.status == http.StatusNotFound {
		return Lab{}, ErrNotLab
	}
	var lab Lab
	if err := r.decode(http.StatusOK, &lab); err != nil {
		return Lab{}, fmt.Errorf("GET %s: %w", path, err)
	}
	if len(lab.Strategies) == 0 {
		return Lab{}, fmt.Errorf("GET %s: %w: its table is empty", path, ErrNotLab)
	}
	return lab, nil
}

// Create puts units of a new SKU up for sale.
func (c *Client) Create(ctx context.Context, sku string, units int64) error {
	const path = "/v1/skus"
	type price struct {
		Minor    int64  `json:"minor"`
		Currency string `json:"currency"`
	}
	body := struct {
		SKU   string `json:"sku"`
		Price price  `json:"price"`
		Units int64  `json:"units"`
	}{sku, price{Minor: 100, Currency: "EUR"}, units}
	r, err := c.do(ctx, http.MethodPost, path, nil, body)
	if err == nil && r.status != http.StatusCreated {
		err = r.unexpected()
	}
	if err != nil {
		return fmt.Errorf("POST %s for %s: %w", path, sku, err)
	}
	return nil
}

// Audit returns the shop's check of its books for one SKU.
func (c *Client) Audit(ctx context.Context, sku string) (Audit, error) {
	path := "/v1/audit?sku=" + url.QueryEscape(sku)
	a, err := c.audit(ctx, path)
	if err != nil {
		return Audit{}, err
	}
	i := slices.IndexFunc(a.SKUs, func(b Books) bool { return b.SKU == sku })
	if i < 0 {
		return Audit{}, fmt.Errorf("GET %s: the SKU is missing in the answer", path)
	}
	return Audit{OK: a.OK, Books: a.SKUs[i], Differences: a.Differences}, nil
}

// Clean reports whether the shop finds no difference in all its books, and those
// that it lists. For many SKUs this is far cheaper than an Audit of each.
func (c *Client) Clean(ctx context.Context) (bool, []Difference, error) {
	a, err := c.audit(ctx, "/v1/audit")
	return a.OK, a.Differences, err
}

// Available returns how many units of a SKU can be bought.
func (c *Client) Available(ctx context.Context, sku string) (int64, error) {
	path := "/v1/skus/" + url.PathEscape(sku)
	r, err := c.do(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return 0, err
	}
	var shown struct {
		Available int64 `json:"available"`
	}
	if err := r.decode(http.StatusOK, &shown); err != nil {
		return 0, fmt.Errorf("GET %s: %w", path, err)
	}
	return shown.Available, nil
}

func (c *Client) audit(ctx context.Context, path string) (books, error) {
	var a books
	r, err := c.do(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return a, err
	}
	if err := r.decode(http.StatusOK, &a); err != nil {
		return a, fmt.Errorf("GET %s: %w", path, err)
	}
	return a, nil
}

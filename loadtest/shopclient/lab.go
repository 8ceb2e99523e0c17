package shopclient

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// Strategy is a way to sell, as the shop's table of them describes it.
type Strategy struct {
	Name            string `json:"name"`
	Lock            string `json:"lock"`
	Take            string `json:"take"`
	PromisesCorrect bool   `json:"promises_correct"`
	Lesson          string `json:"lesson"`
	Available       bool   `json:"available"`
	Reason          string `json:"reason,omitempty"` // why it is not
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
	r, err := c.do(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return Audit{}, err
	}
	var a books
	if err := r.decode(http.StatusOK, &a); err != nil {
		return Audit{}, fmt.Errorf("GET %s: %w", path, err)
	}
	i := slices.IndexFunc(a.SKUs, func(b Books) bool { return b.SKU == sku })
	if i < 0 {
		return Audit{}, fmt.Errorf("GET %s: the SKU is missing in the answer", path)
	}
	return Audit{OK: a.OK, Books: a.SKUs[i], Differences: a.Differences}, nil
}

// TapeEnded is the state of a Tape whose request was answered.
const TapeEnded = "ended"

// Tape is what a request has done by now, as the shop recorded it.
type Tape struct {
	State   string      `json:"state"`
	Version int         `json:"version"` // higher with each change
	Events  []TapeEvent `json:"events"`
}

// TapeEvent is a step, a command or a statement of a request.
type TapeEvent struct {
	At     int64  `json:"at"` // microseconds since 1970, by the shop's clock
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Answer string `json:"answer"`
}

// Tape returns what was recorded under a name as soon as its version is higher
// than seen, or after a while as it is. ErrNotFound: nothing was, by now.
func (c *Client) Tape(ctx context.Context, name string, seen int) (Tape, error) {
	path := "/v1/tapes/" + url.PathEscape(name) + "?seen=" + strconv.Itoa(seen)
	return c.tape(ctx, http.MethodGet, path)
}

// Resume lets the request go on that is recorded under this name.
func (c *Client) Resume(ctx context.Context, name string) (Tape, error) {
	return c.tape(ctx, http.MethodPost, "/v1/tapes/"+url.PathEscape(name)+"/resume")
}

func (c *Client) tape(ctx context.Context, method, path string) (t Tape, err error) {
	r, err := c.do(ctx, method, path, nil, nil)
	switch {
	case err != nil:
		return t, err
	case r.status == http.StatusNotFound:
		return t, ErrNotFound
	}
	err = r.decode(http.StatusOK, &t)
	return t, err
}

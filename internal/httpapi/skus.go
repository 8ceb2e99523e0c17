package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// OperatorStock is Stock with its ledger.
type OperatorStock interface {
	Stock
	Supply(ctx context.Context, d stock.Delivery) (after stock.SKU, replayed bool, err error)
	SetLimitPerBuyer(ctx context.Context, sku string, perBuyer int64) (after stock.SKU, err error)
	Movements(ctx context.Context, sku, after string, limit int) ([]stock.Movement, error)
}

// listSKUs answers GET /v1/skus.
func (a *api) listSKUs(c *gin.Context) (int, any, error) {
	shown, next, err := page(c, list[stock.SKU]{"sku1", stock.ValidName, func(s stock.SKU) string { return s.Name }}, a.Stock.List)
	return http.StatusOK, skuPageJSON{SKUs: mapped(shown, skuToJSON), NextCursor: next}, err
}

// getSKU answers GET /v1/skus/{sku}.
func (a *api) getSKU(c *gin.Context) (int, any, error) {
	name, err := skuName(c)
	if err != nil {
		return 0, nil, err
	}
	sku, err := a.Stock.SKU(c.Request.Context(), name)
	return http.StatusOK, skuToJSON(sku), inURL(name, err)
}

// createSKU answers POST /v1/skus, of the operator and in teaching mode.
func (a *api) createSKU(c *gin.Context) (int, any, error) {
	var body struct {
		SKU   string `json:"sku"`
		Price *struct {
			Minor    *int64 `json:"minor"` // 0 is a price, absent is none
			Currency string `json:"currency"`
		} `json:"price"`
		Units         int64 `json:"units"`
		LimitPerBuyer int64 `json:"limit_per_buyer"` // 0 for none
	}
	if err := decode(c, &body); err != nil {
		return 0, nil, err
	}
	var price stock.Money
	switch {
	case body.Price == nil && a.Lab != nil:
		price = stock.Money{Minor: 10_00, Currency: "EUR"} // of a lesson that does not care
	case body.Price != nil && body.Price.Minor != nil:
		price = stock.Money{Minor: *body.Price.Minor, Currency: body.Price.Currency}
	default:
		return 0, nil, fmt.Errorf(`%w: price: want one such as {"minor":1250,"currency":"EUR"}`, stock.ErrInvalid)
	}
	sku, err := stock.NewSKU(body.SKU, price, body.Units, time.Now())
	if err == nil {
		sku.LimitPerBuyer = body.LimitPerBuyer
		err = stock.CheckLimit(sku.LimitPerBuyer)
	}
	if err == nil {
		err = a.Stock.Create(c.Request.Context(), sku)
	}
	if err != nil {
		return 0, nil, err
	}
	c.Header("Location", "/v1/skus/"+sku.Name)
	return http.StatusCreated, skuToJSON(sku), nil
}

// changeSKU answers PATCH /v1/skus/{sku}.
func (o *operator) changeSKU(c *gin.Context) (int, any, error) {
	name, err := skuName(c)
	if err != nil {
		return 0, nil, err
	}
	var body struct {
		LimitPerBuyer *int64 `json:"limit_per_buyer"`
	}
	if err := decode(c, &body); err != nil {
		return 0, nil, err
	}
	if body.LimitPerBuyer == nil {
		return 0, nil, fmt.Errorf("%w: limit_per_buyer: want the units that a buyer may have, 0 for any number", stock.ErrInvalid)
	}
	after, err := o.stock.SetLimitPerBuyer(c.Request.Context(), name, *body.LimitPerBuyer)
	return http.StatusOK, skuToJSON(after), inURL(name, err)
}

// restock answers POST /v1/skus/{sku}/movements.
func (o *operator) restock(c *gin.Context) (int, any, error) {
	name, err := skuName(c)
	if err != nil {
		return 0, nil, err
	}
	key, _, err := header(c, headerKey)
	if err == nil {
		err = order.CheckKey(key)
	}
	if err != nil {
		return 0, nil, err
	}
	var body struct {
		Kind  string `json:"kind"`
		Units int64  `json:"units"`
	}
	if err := decode(c, &body); err != nil {
		return 0, nil, err
	}
	if body.Kind != string(stock.Supply) {
		return 0, nil, fmt.Errorf("%w: kind %.20q: want %q, the only one that is not an order's", stock.ErrInvalid, body.Kind, stock.Supply)
	}
	delivery, err := stock.NewDelivery(name, key, body.Units, time.Now())
	if err != nil {
		return 0, nil, err
	}
	after, replayed, err := o.stock.Supply(c.Request.Context(), delivery)
	setReplayed(c, replayed)
	after.LimitPerBuyer = 0 // left out: a replay is the same bytes, and the limit may be another by then
	return http.StatusCreated, skuToJSON(after), inURL(name, err)
}

// listMovements answers GET /v1/skus/{sku}/movements, the earliest first.
func (o *operator) listMovements(c *gin.Context) (int, any, error) {
	name, err := skuName(c)
	if err != nil {
		return 0, nil, err
	}
	shown, next, err := page(c, list[stock.Movement]{"movement1", validID, func(m stock.Movement) string { return m.ID }},
		func(ctx context.Context, after string, limit int) ([]stock.Movement, error) {
			return o.stock.Movements(ctx, name, after, limit)
		})
	return http.StatusOK, movementPageJSON{Movements: mapped(shown, movementToJSON), NextCursor: next}, inURL(name, err)
}

func skuName(c *gin.Context) (string, error) {
	name := c.Param("sku")
	if !stock.ValidName(name) {
		return "", inURL(name, order.ErrUnknownSKU)
	}
	return name, nil
}

// inURL turns the error of a SKU that a URL names: there, an unknown one is not found;
// in a body it is a mistake in the order.
func inURL(name string, err error) error {
	if errors.Is(err, order.ErrUnknownSKU) {
		return fmt.Errorf("sku %.80q: %w", name, errNoSKU)
	}
	return err
}

type skuJSON struct {
	SKU           string    `json:"sku"`
	Price         moneyJSON `json:"price"`
	Supplied      int64     `json:"supplied"`
	Available     int64     `json:"available"`
	Reserved      int64     `json:"reserved"`
	Sold          int64     `json:"sold"`
	LimitPerBuyer int64     `json:"limit_per_buyer,omitempty"` // absent if there is none
}

type skuPageJSON struct {
	SKUs       []skuJSON `json:"skus"`
	NextCursor string    `json:"next_cursor,omitempty"` // absent on the last page
}

func skuToJSON(s stock.SKU) skuJSON {
	return skuJSON{
		SKU:           s.Name,
		Price:         moneyToJSON(s.Price),
		Supplied:      s.Level.Supplied,
		Available:     s.Level.Available,
		Reserved:      s.Level.Reserved,
		Sold:          s.Level.Sold,
		LimitPerBuyer: s.LimitPerBuyer,
	}
}

// movementJSON is a row of the ledger: its counts are what it added, negative where units
// left.
type movementJSON struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"`
	OrderID   string `json:"order_id,omitempty"` // absent for a supply
	Supplied  int64  `json:"supplied"`
	Available int64  `json:"available"`
	Reserved  int64  `json:"reserved"`
	Sold      int64  `json:"sold"`
	Fence     int64  `json:"fence"`
	CreatedAt string `json:"created_at"` // RFC 3339, UTC
}

type movementPageJSON struct {
	Movements  []movementJSON `json:"movements"`
	NextCursor string         `json:"next_cursor,omitempty"` // absent on the last page
}

func movementToJSON(m stock.Movement) movementJSON {
	return movementJSON{
		ID:        m.ID,
		Kind:      string(m.Kind),
		OrderID:   m.OrderID,
		Supplied:  m.Change.Supplied,
		Available: m.Change.Available,
		Reserved:  m.Change.Reserved,
		Sold:      m.Change.Sold,
		Fence:     m.Fence,
		CreatedAt: timeToJSON(m.At),
	}
}

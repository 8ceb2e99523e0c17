package httpapi

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

func (a *api) listSKUs(c *call) (int, any, error) {
	return page(c, "skus", stock.ValidName, a.Store.List, func(s stock.SKU) string { return s.Name })
}

func (a *api) getSKU(c *call) (int, any, error) {
	sku, err := a.Store.SKU(c.Request.Context(), c.Param("sku"))
	return http.StatusOK, sku, err
}

func (a *api) createSKU(c *call) (int, any, error) {
	var body struct {
		SKU           string      `json:"sku"`
		Price         stock.Money `json:"price"`
		Units         int64       `json:"units"`
		LimitPerBuyer int64       `json:"limit_per_buyer"` // 0 for none
	}
	body.Price.Minor = -1 // refuses a missing price; 0 is a price
	if err := decode(c, &body); err != nil {
		return 0, nil, err
	}
	sku, err := stock.NewSKU(body.SKU, body.Price, body.Units, time.Now())
	if err == nil {
		sku.LimitPerBuyer = body.LimitPerBuyer
		err = stock.CheckLimit(sku.LimitPerBuyer)
	}
	if err == nil {
		err = a.Store.Create(c.Request.Context(), sku)
	}
	if err != nil {
		return 0, nil, err
	}
	c.Header("Location", "/v1/skus/"+sku.Name)
	return http.StatusCreated, sku, nil
}

func (a *api) changeSKU(c *call) (int, any, error) {
	var body struct {
		LimitPerBuyer int64 `json:"limit_per_buyer"`
	}
	body.LimitPerBuyer = -1 // refuses a missing limit
	if err := decode(c, &body); err != nil {
		return 0, nil, err
	}
	after, err := a.Store.SetLimitPerBuyer(c.Request.Context(), c.Param("sku"), body.LimitPerBuyer)
	return http.StatusOK, after, err
}

func (a *api) restock(c *call) (int, any, error) {
	var body struct {
		Kind  stock.Kind `json:"kind"`
		Units int64      `json:"units"`
	}
	key := c.value(headerKey)
	if err := order.CheckKey(key); err != nil {
		return 0, nil, err
	}
	if err := decode(c, &body); err != nil {
		return 0, nil, err
	}
	if body.Kind != stock.Supply {
		return 0, nil, fmt.Errorf("%w: kind %.20q: want %q: orders make the other movements", stock.ErrInvalid, body.Kind, stock.Supply)
	}
	delivery := stock.Delivery{SKU: c.Param("sku"), Key: key, Units: body.Units, At: time.Now()}
	after, replayed, err := a.Store.Supply(c.Request.Context(), delivery)
	if replayed {
		c.Header(headerReplayed, "true")
	}
	after.LimitPerBuyer = 0 // left out: it may change, and a replay must have the same bytes
	return http.StatusCreated, after, err
}

func (a *api) listMovements(c *call) (int, any, error) {
	find := func(ctx context.Context, after string, limit int) ([]stock.Movement, error) {
		return a.Store.Movements(ctx, c.Param("sku"), after, limit)
	}
	return page(c, "movements", validID, find, func(m stock.Movement) string { return m.ID })
}

// audit answers with status 200, even if there are differences.
func (a *api) audit(c *call) (int, any, error) {
	sku, one := c.GetQuery("sku")
	if one && sku == "" {
		return 0, nil, errNoSKU
	}
	report := stock.NewReport()
	err := a.Store.Audit(c.Request.Context(), sku, report.AddAccount, report.AddDifference)
	return http.StatusOK, report, err
}

const (
	defaultPage = 50 // items
	maxPage     = 100
)

// page answers with the page of a list that the URL asks for, and the cursor of the next page. A cursor has the name of
// its list, so that every other list refuses it, and the key of the last item shown. page asks for one item more than
// it shows, to know whether there is a next page.
func page[T any](c *call, list string, valid func(key string) bool,
	find func(ctx context.Context, after string, limit int) ([]T, error), keyOf func(T) string,
) (status int, body any, err error) {
	limit, after := defaultPage, ""
	if text := c.Query("limit"); text != "" {
		limit, err = strconv.Atoi(text)
		if err != nil || limit < 1 || limit > maxPage {
			return 0, nil, fmt.Errorf("%w: limit %.20q: want 1 to %d", ErrMalformed, text, maxPage)
		}
	}
	if text := c.Query("cursor"); text != "" {
		plain, err := base64.RawURLEncoding.Strict().DecodeString(text)
		name, key, _ := strings.Cut(string(plain), ":")
		if err != nil || name != list || !valid(key) {
			return 0, nil, fmt.Errorf("%w: cursor: want a next_cursor that this list has answered", ErrMalformed)
		}
		after = key
	}
	found, err := find(c.Request.Context(), after, limit+1)
	if err != nil {
		return 0, nil, err
	}
	answer := gin.H{list: append([]T{}, found[:min(limit, len(found))]...)}
	if len(found) > limit {
		answer["next_cursor"] = base64.RawURLEncoding.EncodeToString([]byte(list + ":" + keyOf(found[limit-1])))
	}
	return http.StatusOK, answer, nil
}

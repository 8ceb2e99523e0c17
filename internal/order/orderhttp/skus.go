package orderhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/stock"
)

// Sizes of a page of SKUs.
const (
	defaultPage = 50
	maxPage     = 100
)

// listSKUs answers GET /v1/skus.
func (a *api) listSKUs(c *gin.Context) {
	after, limit, err := page(c)
	if err != nil {
		a.fail(c, err)
		return
	}
	// One more than is shown tells whether there is a next page.
	found, err := a.Stock.List(c.Request.Context(), after, limit+1)
	if err != nil {
		a.fail(c, err)
		return
	}
	next := ""
	if len(found) > limit {
		found = found[:limit]
		next = cursorAfter(found[limit-1].Name)
	}
	shown := make([]skuJSON, len(found))
	for i, sku := range found {
		shown[i] = skuToJSON(sku)
	}
	a.answer(c, http.StatusOK, skuPageJSON{SKUs: shown, NextCursor: next})
}

// page reads where a page begins and how many SKUs it has.
func page(c *gin.Context) (after string, limit int, err error) {
	q, err := query(c, "cursor", "limit")
	if err != nil {
		return "", 0, err
	}
	limit = defaultPage
	if text := q["limit"]; text != "" {
		limit, err = strconv.Atoi(text)
		if err != nil || limit < 1 || limit > maxPage {
			return "", 0, fmt.Errorf("%w: limit %.20q: want 1 to %d", errMalformed, text, maxPage)
		}
	}
	after, err = readCursor(q["cursor"])
	return after, limit, err
}

// getSKU answers GET /v1/skus/{sku}.
func (a *api) getSKU(c *gin.Context) {
	sku, err := a.sku(c, c.Param("sku"))
	if err != nil {
		a.fail(c, err)
		return
	}
	a.answer(c, http.StatusOK, skuToJSON(sku))
}

// sku returns the SKU that the URL asks for.
func (a *api) sku(c *gin.Context, name string) (stock.SKU, error) {
	if !stock.ValidName(name) {
		return stock.SKU{}, inURL(name, stock.ErrUnknownSKU)
	}
	sku, err := a.Stock.SKU(c.Request.Context(), name)
	return sku, inURL(name, err)
}

// inURL turns the error of a SKU that a URL names: there, an unknown one is not
// found; in a body it is a mistake in the order.
func inURL(name string, err error) error {
	if errors.Is(err, stock.ErrUnknownSKU) {
		return fmt.Errorf("sku %.80q: %w", name, errNoSKU)
	}
	return err
}

package orderhttp

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/stock"
)

// listSKUs answers GET /v1/skus.
func (a *api) listSKUs(c *gin.Context) {
	after, limit, err := page(c, skuCursor())
	if err != nil {
		a.fail(c, err)
		return
	}
	found, err := a.Stock.List(c.Request.Context(), after, limit+1)
	if err != nil {
		a.fail(c, err)
		return
	}
	found, next := cut(skuCursor(), found, limit, func(s stock.SKU) string { return s.Name })
	shown := make([]skuJSON, len(found))
	for i, sku := range found {
		shown[i] = skuToJSON(sku)
	}
	a.answer(c, http.StatusOK, skuPageJSON{SKUs: shown, NextCursor: next})
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

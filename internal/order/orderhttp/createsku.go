package orderhttp

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/stock"
)

// createSKU answers POST /v1/skus.
func (a *api) createSKU(c *gin.Context) {
	var body skuBody
	if err := decode(c, &body); err != nil {
		a.fail(c, err)
		return
	}
	price, err := a.price(body)
	if err != nil {
		a.fail(c, err)
		return
	}
	sku, err := stock.NewSKU(body.SKU, price, int64(body.Units), time.Now())
	if err == nil {
		sku.LimitPerBuyer = int64(body.LimitPerBuyer)
		err = stock.CheckLimit(sku.LimitPerBuyer)
	}
	if err != nil {
		a.fail(c, err)
		return
	}
	if err := a.Stock.Create(c.Request.Context(), sku); err != nil {
		a.fail(c, err)
		return
	}
	c.Header("Location", "/v1/skus/"+sku.Name)
	a.answer(c, http.StatusCreated, skuToJSON(sku))
}

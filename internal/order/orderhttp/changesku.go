package orderhttp

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/stock"
)

// changeSKU answers PATCH /v1/skus/{sku}.
func (o *operator) changeSKU(c *gin.Context) {
	sku, limit, err := readChange(c)
	if err != nil {
		o.fail(c, err)
		return
	}
	after, err := o.stock.SetLimitPerBuyer(c.Request.Context(), sku, limit)
	if err != nil {
		o.fail(c, inURL(sku, err))
		return
	}
	o.answer(c, http.StatusOK, skuToJSON(after))
}

func readChange(c *gin.Context) (sku string, limit int64, err error) {
	sku = c.Param("sku")
	if !stock.ValidName(sku) {
		return "", 0, inURL(sku, stock.ErrUnknownSKU)
	}
	var body changeBody
	if err := decode(c, &body); err != nil {
		return "", 0, err
	}
	if body.LimitPerBuyer == nil {
		return "", 0, fmt.Errorf("%w: limit_per_buyer: want the units that a buyer may have, 0 for any number", stock.ErrInvalid)
	}
	return sku, int64(*body.LimitPerBuyer), nil
}

// changeBody is what PATCH /v1/skus/{sku} reads.
type changeBody struct {
	LimitPerBuyer *count `json:"limit_per_buyer"`
}

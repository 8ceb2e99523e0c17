package orderhttp

import (
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

const howToSwitchOn = "start the shop with `shop serve --lab`"

// labOnly lets requests through to handle in teaching mode. There are no
// operator tokens yet, so a shop for buyers must not offer it.
func (a *api) labOnly(handle gin.HandlerFunc) gin.HandlerFunc {
	if a.Lab {
		return handle
	}
	return func(c *gin.Context) {
		a.fail(c, fmt.Errorf("%w: %s %s is there only in teaching mode, %s",
			errLabOff, c.Request.Method, c.FullPath(), howToSwitchOn))
	}
}

// listStrategies answers GET /v1/strategies.
func (a *api) listStrategies(c *gin.Context) {
	table := order.Strategies()
	shown := make([]strategyJSON, len(table))
	for i, s := range table {
		shown[i] = strategyJSON{Name: s.Name, Lock: s.Lock, Take: string(s.Take), PromisesCorrect: s.Promises, Lesson: s.Lesson}
	}
	a.answer(c, http.StatusOK, strategiesJSON{Strategies: shown})
}

type strategiesJSON struct {
	Strategies []strategyJSON `json:"strategies"` // the default first
}

type strategyJSON struct {
	Name            string `json:"name"`
	Lock            string `json:"lock"` // empty for none
	Take            string `json:"take"`
	PromisesCorrect bool   `json:"promises_correct"`
	Lesson          string `json:"lesson"`
}

// createSKU answers POST /v1/skus.
func (a *api) createSKU(c *gin.Context) {
	var body skuBody
	if err := decode(c, &body); err != nil {
		a.fail(c, err)
		return
	}
	sku, err := stock.NewSKU(body.SKU, body.price(), int64(body.Units), time.Now())
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

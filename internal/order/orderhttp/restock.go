package orderhttp

import (
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// restock answers POST /v1/skus/{sku}/movements.
func (o *operator) restock(c *gin.Context) {
	delivery, err := readDelivery(c)
	if err != nil {
		o.fail(c, err)
		return
	}
	after, replayed, err := o.stock.Supply(c.Request.Context(), delivery)
	if err != nil {
		o.fail(c, inURL(delivery.SKU, err))
		return
	}
	if replayed {
		c.Header(headerReplayed, "true")
	}
	shown := skuToJSON(after)
	shown.LimitPerBuyer = 0 // left out: a replay is the same bytes, and the limit may be another by then
	o.answer(c, http.StatusCreated, shown)
}

func readDelivery(c *gin.Context) (stock.Delivery, error) {
	sku := c.Param("sku")
	if !stock.ValidName(sku) {
		return stock.Delivery{}, inURL(sku, stock.ErrUnknownSKU)
	}
	key, _, err := header(c, headerKey)
	if err != nil {
		return stock.Delivery{}, err
	}
	if key == "" {
		return stock.Delivery{}, errNoDelivery
	}
	if err := order.CheckKey(key); err != nil {
		return stock.Delivery{}, err
	}
	var body deliveryBody
	if err := decode(c, &body); err != nil {
		return stock.Delivery{}, err
	}
	if body.Kind != string(stock.Supply) {
		return stock.Delivery{}, fmt.Errorf("%w: kind %.20q: want %q, the only one that is not an order's", stock.ErrInvalid, body.Kind, stock.Supply)
	}
	return stock.NewDelivery(sku, key, int64(body.Units), time.Now())
}

// deliveryBody is what a restock reads.
type deliveryBody struct {
	Kind  string `json:"kind"`
	Units count  `json:"units"`
}

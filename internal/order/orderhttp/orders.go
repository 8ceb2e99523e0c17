package orderhttp

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"example.com/shop/internal/order"
)

// placeOrder answers POST /v1/orders.
func (a *api) placeOrder(c *gin.Context) {
	r, err := a.orderRequest(c)
	if err != nil {
		a.fail(c, err)
		return
	}
	placed, replayed, err := a.Orders.Place(c.Request.Context(), r)
	if err != nil {
		a.fail(c, err)
		return
	}
	if replayed {
		c.Header(headerReplayed, "true")
	}
	c.Header("Location", "/v1/orders/"+placed.ID)
	a.answer(c, http.StatusCreated, orderToJSON(placed))
}

// orderRequest reads the headers first: a shop that is asked for teaching mode
// says so, whatever the body.
func (a *api) orderRequest(c *gin.Context) (order.Request, error) {
	lesson, err := a.lesson(c)
	if err != nil {
		return order.Request{}, err
	}
	who, err := buyer(c)
	if err != nil {
		return order.Request{}, err
	}
	key, _, err := header(c, headerKey)
	if err != nil {
		return order.Request{}, fmt.Errorf("%w: %w", order.ErrKeyInvalid, err)
	}
	var body orderBody
	if err := decode(c, &body); err != nil {
		return order.Request{}, err
	}
	return order.Request{
		Buyer:    who,
		Key:      key,
		Lines:    body.lines(),
		Strategy: lesson.strategy,
		Think:    lesson.think,
	}, nil
}

// getOrder answers GET /v1/orders/{id}.
func (a *api) getOrder(c *gin.Context) {
	who, err := buyer(c)
	if err != nil {
		a.fail(c, err)
		return
	}
	id := c.Param("id")
	// Only the canonical form: databases may compare strings more loosely.
	if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
		a.fail(c, fmt.Errorf("order %.40q: %w", id, order.ErrNotFound))
		return
	}
	found, err := a.Orders.Order(c.Request.Context(), who, id)
	if err != nil {
		a.fail(c, err)
		return
	}
	a.answer(c, http.StatusOK, orderToJSON(found))
}

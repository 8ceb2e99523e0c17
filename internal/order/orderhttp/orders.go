package orderhttp

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// placeOrder answers POST /v1/orders.
func (a *api) placeOrder(c *gin.Context) {
	r, err := a.readOrder(c)
	if err != nil {
		a.fail(c, err)
		return
	}
	ctx, trace, end, err := a.watch(c, r)
	if err != nil {
		a.fail(c, err)
		return
	}
	defer end()
	placed, replayed, err := a.Orders.Place(ctx, r)
	if trace != nil && !replayed && (err == nil || errors.Is(err, stock.ErrSoldOut)) {
		c.Header(headerTrace, traceHeader(trace.Steps()))
	}
	if err != nil {
		a.fail(c, err)
		return
	}
	if replayed {
		c.Header(headerReplayed, "true")
	}
	exchangeOf(c).again = replayed
	c.Header("Location", "/v1/orders/"+placed.ID)
	a.answer(c, http.StatusCreated, orderToJSON(placed))
}

// readOrder reads an order from a request, once, whoever asks for it.
func (a *api) readOrder(c *gin.Context) (order.Request, error) {
	seen := exchangeOf(c)
	if !seen.orderRead {
		seen.order, seen.orderErr = a.orderRequest(c)
		seen.orderRead = true
	}
	return seen.order, seen.orderErr
}

// orderRequest reads the headers first: a shop that is asked for teaching mode
// says so, whatever the body.
func (a *api) orderRequest(c *gin.Context) (order.Request, error) {
	lesson, err := a.lesson(c)
	if err != nil {
		return order.Request{}, err
	}
	who, err := a.buyer(c)
	if err != nil {
		return order.Request{}, err
	}
	key, _, err := idempotencyKey(c)
	if err != nil {
		return order.Request{}, err
	}
	lines, err := a.orderLines(c)
	if err != nil {
		return order.Request{}, err
	}
	return order.Request{
		Buyer:    who,
		Key:      key,
		Lines:    lines,
		Strategy: lesson.strategy,
		Think:    lesson.think,
	}, nil
}

// orderLines reads the body of an order.
func (a *api) orderLines(c *gin.Context) ([]order.RequestLine, error) {
	text, err := readBody(c)
	if err != nil {
		return nil, err
	}
	if lines, known := a.bodies.lines(text); known {
		return lines, nil
	}
	var body orderBody
	if err := parse(text, &body); err != nil {
		return nil, err
	}
	lines := body.lines()
	a.bodies.remember(text, lines)
	return lines, nil
}

// getOrder answers GET /v1/orders/{id}.
func (a *api) getOrder(c *gin.Context) {
	who, id, err := a.buyersOrder(c)
	if err != nil {
		a.fail(c, err)
		return
	}
	found, err := a.Orders.Order(c.Request.Context(), who, id)
	if err != nil {
		a.fail(c, err)
		return
	}
	a.answer(c, http.StatusOK, orderToJSON(found))
}

// listOrders answers GET /v1/orders.
func (a *api) listOrders(c *gin.Context) {
	who, err := a.buyer(c)
	if err != nil {
		a.fail(c, err)
		return
	}
	before, limit, err := page(c, orderCursor())
	if err != nil {
		a.fail(c, err)
		return
	}
	found, err := a.Orders.Orders(c.Request.Context(), who, before, limit+1)
	if err != nil {
		a.fail(c, err)
		return
	}
	found, next := cut(orderCursor(), found, limit, func(o order.Order) string { return o.ID })
	shown := make([]orderJSON, len(found))
	for i, o := range found {
		shown[i] = orderToJSON(o)
	}
	a.answer(c, http.StatusOK, orderPageJSON{Orders: shown, NextCursor: next})
}

// buyersOrder reads whose order is asked for.
func (a *api) buyersOrder(c *gin.Context) (who, id string, err error) {
	if who, err = a.buyer(c); err != nil {
		return "", "", err
	}
	id = c.Param("id")
	if !validID(id) {
		return "", "", fmt.Errorf("order %.40q: %w", id, order.ErrNotFound)
	}
	return who, id, nil
}

// validID accepts the canonical form alone: databases may compare strings more
// loosely.
func validID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.String() == id
}

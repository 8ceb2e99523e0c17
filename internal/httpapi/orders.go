package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// placeOrder answers POST /v1/orders.
func (a *api) placeOrder(c *gin.Context) (int, any, error) {
	if err := a.countChange(c); err != nil {
		return 0, nil, err
	}
	r, err := a.readOrder(c)
	if err != nil {
		return 0, nil, err
	}
	exchangeOf(c).request = &r
	ctx, trace, err := a.record(c, r)
	if err != nil {
		return 0, nil, err
	}
	placed, replayed, err := a.Orders.Place(ctx, r)
	if trace != nil {
		trace.End()
		if !replayed && (err == nil || errors.Is(err, order.ErrSoldOut)) {
			c.Header("Shop-Trace", trace.Header())
		}
	}
	if err != nil {
		return 0, nil, err
	}
	setReplayed(c, replayed)
	exchangeOf(c).again = replayed
	c.Header("Location", "/v1/orders/"+placed.ID)
	return http.StatusCreated, orderToJSON(placed), nil
}

// readOrder reads the headers first: a shop that is asked for teaching mode says that it is
// off, whatever the body.
func (a *api) readOrder(c *gin.Context) (order.Request, error) {
	r := order.Request{Buyer: exchangeOf(c).buyer}
	var err error
	if r.Strategy, r.Think, err = a.lesson(c); err != nil {
		return r, err
	}
	if r.Key, _, err = header(c, headerKey); err != nil {
		return r, err
	}
	var body struct {
		Lines []struct {
			SKU      string `json:"sku"`
			Quantity int64  `json:"quantity"`
		} `json:"lines"`
	}
	if err := decode(c, &body); err != nil {
		return r, err
	}
	r.Lines = make([]order.RequestLine, len(body.Lines))
	for i, line := range body.Lines {
		r.Lines[i] = order.RequestLine{SKU: line.SKU, Units: line.Quantity}
	}
	return r, nil
}

// getOrder answers GET /v1/orders/{id}.
func (a *api) getOrder(c *gin.Context) (int, any, error) {
	id, err := orderID(c)
	if err != nil {
		return 0, nil, err
	}
	found, err := a.Orders.Order(c.Request.Context(), exchangeOf(c).buyer, id)
	return http.StatusOK, orderToJSON(found), err
}

// listOrders answers GET /v1/orders, the latest first.
func (a *api) listOrders(c *gin.Context) (int, any, error) {
	shown, next, err := page(c, list[order.Order]{"order1", validID, func(o order.Order) string { return o.ID }},
		func(ctx context.Context, before string, limit int) ([]order.Order, error) {
			return a.Orders.Orders(ctx, exchangeOf(c).buyer, before, limit)
		})
	return http.StatusOK, orderPageJSON{Orders: mapped(shown, orderToJSON), NextCursor: next}, err
}

// endOrder answers POST /v1/orders/{id}/pay and /cancel. They take no body, and work
// without an Idempotency-Key: an order ends once, and asking again for the same end is
// answered with the order.
func (a *api) endOrder(end func(context.Context, order.EndRequest) (order.Ended, error)) handler {
	return func(c *gin.Context) (int, any, error) {
		if err := a.countChange(c); err != nil {
			return 0, nil, err
		}
		id, err := orderID(c)
		if err != nil {
			return 0, nil, err
		}
		key, given, err := header(c, headerKey)
		if err == nil && given && key == "" {
			err = order.ErrKeyMissing // the header is there, and empty
		}
		if err == nil {
			err = wantNoBody(c)
		}
		if err != nil {
			return 0, nil, err
		}
		ended, err := end(c.Request.Context(), order.EndRequest{Buyer: exchangeOf(c).buyer, OrderID: id, Key: key})
		setReplayed(c, ended.Replayed)
		exchangeOf(c).again = !ended.First
		return http.StatusOK, orderToJSON(ended.Order), err
	}
}

func setReplayed(c *gin.Context, replayed bool) {
	if replayed {
		c.Header("Idempotent-Replayed", "true")
	}
}

func orderID(c *gin.Context) (string, error) {
	id := c.Param("id")
	if !validID(id) {
		return "", fmt.Errorf("order %.40q: %w", id, order.ErrNotFound)
	}
	return id, nil
}

// validID accepts the canonical form alone: databases may compare strings more loosely.
func validID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.String() == id
}

// orderJSON is an order as it is answered. A replay is encoded from the same order and so
// is the same text.
type orderJSON struct {
	ID        string     `json:"id"`
	Buyer     string     `json:"buyer"`
	Status    string     `json:"status"`
	Lines     []lineJSON `json:"lines"`
	Total     moneyJSON  `json:"total"`
	CreatedAt string     `json:"created_at"` // RFC 3339, UTC
	ExpiresAt string     `json:"expires_at"` // the same; until then a pending order can be paid
}

type lineJSON struct {
	SKU      string    `json:"sku"`
	Quantity int64     `json:"quantity"`
	Price    moneyJSON `json:"price"` // of one unit
}

type moneyJSON struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"`
}

type orderPageJSON struct {
	Orders     []orderJSON `json:"orders"`
	NextCursor string      `json:"next_cursor,omitempty"` // absent on the last page
}

func orderToJSON(o order.Order) orderJSON {
	return orderJSON{
		ID:     o.ID,
		Buyer:  o.Buyer,
		Status: string(o.Status),
		Lines: mapped(o.Lines, func(l order.Line) lineJSON {
			return lineJSON{SKU: l.SKU, Quantity: l.Units, Price: moneyToJSON(l.Price)}
		}),
		Total:     moneyToJSON(o.Total),
		CreatedAt: timeToJSON(o.CreatedAt),
		ExpiresAt: timeToJSON(o.ExpiresAt),
	}
}

func moneyToJSON(m stock.Money) moneyJSON { return moneyJSON{Minor: m.Minor, Currency: m.Currency} }

func timeToJSON(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// mapped returns what each item becomes; never nil, which would be null in JSON.
func mapped[T, J any](items []T, toJSON func(T) J) []J {
	all := make([]J, len(items))
	for i, item := range items {
		all[i] = toJSON(item)
	}
	return all
}

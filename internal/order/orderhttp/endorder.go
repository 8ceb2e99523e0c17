package orderhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/order"
)

// endOrder answers POST /v1/orders/{id}/pay and /cancel. They take no body, and
// work without an Idempotency-Key: an order ends once, and asking again for the
// end it has come to is answered with the order.
func (a *api) endOrder(end func(context.Context, order.EndRequest) (order.Ended, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		r, err := a.endRequest(c)
		if err != nil {
			a.fail(c, err)
			return
		}
		ended, err := end(c.Request.Context(), r)
		if err != nil {
			a.fail(c, err)
			return
		}
		if ended.Replayed {
			c.Header(headerReplayed, "true")
		}
		exchangeOf(c).again = !ended.First
		a.answer(c, http.StatusOK, orderToJSON(ended.Order))
	}
}

func (a *api) endRequest(c *gin.Context) (order.EndRequest, error) {
	who, id, err := a.buyersOrder(c)
	if err != nil {
		return order.EndRequest{}, err
	}
	key, given, err := idempotencyKey(c)
	if err == nil && given && key == "" {
		err = order.ErrKeyMissing // of its value
	}
	if err == nil {
		err = wantNoBody(c)
	}
	return order.EndRequest{Buyer: who, OrderID: id, Key: key}, err
}

// wantNoBody accepts no body, and an empty object, which some clients send.
func wantNoBody(c *gin.Context) error {
	if c.Request.ContentLength == 0 {
		return nil
	}
	body := bufio.NewReader(c.Request.Body)
	if _, err := body.Peek(1); errors.Is(err, io.EOF) {
		return nil // chunked, of no chunk
	}
	c.Request.Body = struct {
		io.Reader
		io.Closer
	}{body, c.Request.Body}
	var none struct{}
	err := decode(c, &none)
	if errors.Is(err, errMalformed) {
		return fmt.Errorf("%w; this call takes no body", err)
	}
	return err
}

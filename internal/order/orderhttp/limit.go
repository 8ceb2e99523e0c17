package orderhttp

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/order"
)

// Limiter counts what a buyer asks for. retryAfter is how long the buyer has to
// wait; 0 or less lets the request through. An error means that it could not be
// counted and must not go on.
type Limiter interface {
	Allow(ctx context.Context, buyer string) (retryAfter time.Duration, err error)
}

// maxPeeks is how many orders are read at a time before their buyers are counted.
// Whoever sends slowly holds up no more than that.
const maxPeeks = 256

// limitRate turns away buyers who ask for more than their share of changes. It
// stands after knowBuyer and, except of maxPeeks orders, before the body is read. An
// order that would be refused now because its SKU is remembered to be sold out is
// not counted: that would cost more than its refusal.
func (a *api) limitRate(c *gin.Context) {
	if a.Limiter == nil || c.Request.Method != http.MethodPost || !isBuyers(c.FullPath()) {
		return
	}
	who, err := a.buyer(c)
	if err == nil {
		err = order.CheckBuyer(who) // whatever comes as a name must not become a key
	}
	if err != nil {
		a.fail(c, err)
		return
	}
	if a.isSoldOut(c) {
		return
	}
	wait, err := a.Limiter.Allow(c.Request.Context(), who)
	switch {
	case err != nil:
		a.fail(c, fmt.Errorf("%w: %w", errUncounted, err))
	case wait > 0:
		a.fail(c, &tooManyError{wait: wait})
	}
}

// isSoldOut reports whether a request is an order, with nothing wrong with it, that
// the service would refuse without asking anybody.
func (a *api) isSoldOut(c *gin.Context) bool {
	if c.FullPath() != buyersPaths || c.Request.URL.RawQuery != "" {
		return false
	}
	defer a.peeks.Add(-1)
	if a.peeks.Add(1) > maxPeeks {
		return false
	}
	r, err := a.readOrder(c)
	return err == nil && a.Orders.SoldOut(r)
}

// limitInFlight bounds how many requests are read, wait and work at a time, and
// with that every queue behind it. Health checks always get through: a busy shop
// is not a dead one.
func (a *api) limitInFlight(c *gin.Context) {
	if a.MaxInFlight <= 0 || IsHealthCheck(c.FullPath()) {
		return
	}
	defer a.inFlight.Add(-1)
	if a.inFlight.Add(1) > int64(a.MaxInFlight) {
		a.fail(c, errOverloaded)
		return
	}
	c.Next()
}

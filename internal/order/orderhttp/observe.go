package orderhttp

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/logs"
	"example.com/shop/internal/order"
)

// Observer is told what was answered, for metrics. *metrics.Metrics is one.
type Observer interface {
	// Request: the route is the pattern of the path, empty if none matched.
	Request(method, route string, status int, took time.Duration)

	// Order: somebody asked to place, pay or cancel an order (the action). The
	// outcome is placed, paid, cancelled, or replayed for what had come to that
	// before, whatever key it was asked with, or the last part of the problem's
	// type.
	Order(action, outcome string)
}

// exchange is what is known of a request, and what becomes of it.
type exchange struct {
	buyer string // by the token; empty where none was wanted

	order     order.Request // of POST /v1/orders, once it was read
	orderErr  error         // what is wrong with it
	orderRead bool

	problem string // last part of its type; empty for none
	err     error  // why
	again   bool   // it was answered with what had been done before
}

const contextExchange = "shop.exchange"

func exchangeOf(c *gin.Context) *exchange { return c.MustGet(contextExchange).(*exchange) }

// observe names the request, and tells log and metrics what came of it.
func (a *api) observe(c *gin.Context) {
	began := time.Now()
	id := requestID(c.Request.Header)
	seen := &exchange{}
	c.Set(contextExchange, seen)
	c.Header(headerRequestID, id)
	c.Request = c.Request.WithContext(logs.WithRequest(c.Request.Context(), id))
	defer func() { // also when the connection is cut
		took := time.Since(began)
		a.count(c, seen, took)
		a.logRequest(c, seen, took)
	}()
	c.Next()
}

func (a *api) count(c *gin.Context, seen *exchange, took time.Duration) {
	if a.Observer == nil {
		return
	}
	a.Observer.Request(c.Request.Method, c.FullPath(), c.Writer.Status(), took)
	action, outcome := orderAction(c)
	if action == "" {
		return
	}
	switch {
	case seen.problem != "":
		outcome = seen.problem
	case seen.again:
		outcome = "replayed"
	}
	a.Observer.Order(action, outcome)
}

// orderAction returns what a request wants of an order, and what it is called
// when it succeeds; empty for a request that changes none.
func orderAction(c *gin.Context) (action, success string) {
	if c.Request.Method != http.MethodPost {
		return "", ""
	}
	switch c.FullPath() {
	case "/v1/orders":
		return "place", "placed"
	case "/v1/orders/:id/pay":
		return "pay", "paid"
	case "/v1/orders/:id/cancel":
		return "cancel", "cancelled"
	}
	return "", ""
}

// logRequest writes the request's line. It looks at the level first: a thousand
// buyers who are turned away must cost nothing here.
func (a *api) logRequest(c *gin.Context, seen *exchange, took time.Duration) {
	ctx, level := c.Request.Context(), requestLevel(c, seen)
	if !a.Log.Enabled(ctx, level) {
		return
	}
	line := []slog.Attr{
		slog.String("method", c.Request.Method),
		slog.String("path", c.Request.URL.Path),
		slog.Int("status", c.Writer.Status()),
		logs.Took(took),
	}
	if id := orderID(c); id != "" {
		line = append(line, slog.String("order_id", id))
	}
	if seen.err != nil {
		line = append(line, slog.String("problem", seen.problem), slog.Any("error", seen.err))
	}
	a.Log.LogAttrs(ctx, level, "request", line...)
}

// requestLevel is as loud as what happened: changes are news, reads and refusals
// are for who looks closely, and what is the shop's own fault is a warning or an
// error. A shop with too much to do must not have a line to write for each request
// that it turns away: metrics count those, and the limiter tells of each outage once.
func requestLevel(c *gin.Context, seen *exchange) slog.Level {
	switch status := c.Writer.Status(); {
	case errors.Is(seen.err, errOverloaded), errors.Is(seen.err, errUncounted), errors.Is(seen.err, lock.ErrQueueFull):
		return slog.LevelDebug
	case seen.err != nil && status == http.StatusInternalServerError:
		return slog.LevelError
	case seen.err != nil && status > http.StatusInternalServerError:
		return slog.LevelWarn
	case seen.err != nil, c.Request.Method == http.MethodGet, c.Request.Method == http.MethodHead:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// orderID returns the order that a request was about: that in its path, or the
// one that it placed.
func orderID(c *gin.Context) string {
	if id := c.Param("id"); id != "" {
		return id
	}
	if id, placed := strings.CutPrefix(c.Writer.Header().Get("Location"), "/v1/orders/"); placed {
		return id
	}
	return ""
}

package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/observe"
	"example.com/shop/internal/order"
)

// exchange is what becomes known of a request, for its line of the log and for metrics.
type exchange struct {
	buyer   string         // of a request below /v1/orders
	request *order.Request // of POST /v1/orders, once it was read
	again   bool           // it was answered with what had been done before
	problem string         // last part of its type; empty for none
	err     error          // why
}

const contextExchange = "shop.exchange"

func exchangeOf(c *gin.Context) *exchange { return c.MustGet(contextExchange).(*exchange) }

// observe gives the request an id and the headers that all answers have, and reports to
// log and metrics what came of it.
func (a *api) observe(c *gin.Context) {
	began := time.Now()
	id, seen := requestID(c.Request.Header), &exchange{}
	c.Set(contextExchange, seen)
	c.Header(headerRequestID, id)
	c.Header("Cache-Control", "no-store") // stock and orders change
	c.Header("X-Content-Type-Options", "nosniff")
	c.Request = c.Request.WithContext(observe.WithRequest(c.Request.Context(), id))
	defer func() { // also when the connection is cut
		took := time.Since(began)
		a.count(c, seen, took)
		a.logRequest(c, seen, took)
	}()
	c.Next()
}

// requestIDRule is what the id of a request may look like: it is answered and logged.
var requestIDRule = regexp.MustCompile(`^[A-Za-z0-9._:/+=@-]{1,64}$`)

// requestID returns the id that a request brings along, or a new one if that cannot be
// used.
func requestID(h http.Header) string {
	if given := h.Values(headerRequestID); len(given) == 1 && requestIDRule.MatchString(given[0]) {
		return given[0]
	}
	return uuid.Must(uuid.NewV7()).String()
}

// recoverPanics answers a panic as an internal error, and logs it.
func (a *api) recoverPanics(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) { // net/http's way to cut a connection
			panic(p)
		}
		err := fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		if c.Writer.Written() {
			exchangeOf(c).err = err
			panic(http.ErrAbortHandler)
		}
		a.fail(c, err)
	}()
	c.Next()
}

func (a *api) count(c *gin.Context, seen *exchange, took time.Duration) {
	if a.Observer == nil {
		return
	}
	a.Observer.Request(c.Request.Method, c.FullPath(), c.Writer.Status(), took)
	action, outcome := orderAction(c)
	switch {
	case action == "":
		return
	case seen.problem != "":
		outcome = seen.problem
	case seen.again:
		outcome = "replayed"
	}
	a.Observer.Order(action, outcome)
}

// orderAction returns what a request wants of an order, and what it is called when it
// succeeds; empty for a request that changes none.
func orderAction(c *gin.Context) (action, success string) {
	switch c.Request.Method + " " + c.FullPath() {
	case "POST /v1/orders":
		return "place", "placed"
	case "POST /v1/orders/:id/pay":
		return "pay", "paid"
	case "POST /v1/orders/:id/cancel":
		return "cancel", "cancelled"
	}
	return "", ""
}

// logRequest writes the request's line. It looks at the level first: a thousand buyers who
// are turned away must cost nothing here.
func (a *api) logRequest(c *gin.Context, seen *exchange, took time.Duration) {
	ctx, level := c.Request.Context(), requestLevel(c, seen)
	if !a.Log.Enabled(ctx, level) {
		return
	}
	line := []slog.Attr{
		slog.String("method", c.Request.Method),
		slog.String("path", c.Request.URL.Path),
		slog.Int("status", c.Writer.Status()),
		observe.Took(took),
	}
	id, placed := strings.CutPrefix(c.Writer.Header().Get("Location"), "/v1/orders/")
	if !placed {
		id = c.Param("id")
	}
	if id != "" {
		line = append(line, slog.String("order_id", id))
	}
	if a.Lab != nil && seen.request != nil {
		line = append(line, slog.String("strategy", a.strategy(seen.request)), slog.Any("skus", skusOf(*seen.request)))
	}
	if seen.err != nil {
		line = append(line, slog.String("problem", seen.problem), slog.Any("error", seen.err))
	}
	a.Log.LogAttrs(ctx, level, "request", line...)
}

// requestLevel is info for changes, debug for reads and refusals, and a warning or an error
// for what is the shop's own fault. A busy shop writes no line for each request that it
// turns away: metrics count those.
func requestLevel(c *gin.Context, seen *exchange) slog.Level {
	status := c.Writer.Status()
	switch {
	case errors.Is(seen.err, errOverloaded), errors.Is(seen.err, errUncounted), errors.Is(seen.err, lock.ErrQueueFull):
		return slog.LevelDebug
	case seen.err != nil && (status == http.StatusInternalServerError || seen.problem == ""):
		return slog.LevelError
	case seen.err != nil && status > http.StatusInternalServerError:
		return slog.LevelWarn
	case seen.err != nil, c.Request.Method == http.MethodGet, c.Request.Method == http.MethodHead:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

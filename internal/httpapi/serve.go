package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/observe"
	"example.com/shop/internal/order"
)

const (
	headerKey       = "Idempotency-Key"
	headerReplayed  = "Idempotent-Replayed"
	headerRequestID = "X-Request-Id"
)

// call is a request on its way to its answer, and what becomes known of it for log and metrics.
type call struct {
	*gin.Context
	route   route
	buyer   string // of a request below /v1/orders
	orderID string // of the order that it placed
	outcome string // for an order, where it succeeded: placed, paid, cancelled or replayed
	failure row    // zero for none
	err     error  // why it failed
}

// value returns a header's value, empty if it is absent. Of a header that comes twice it makes a value that is refused
// wherever one is read.
func (c *call) value(header string) string {
	return strings.Join(c.Request.Header.Values(header), "\n")
}

// requestIDRule is what the X-Request-Id of a request may look like, which is answered and logged: 1 to 64 letters,
// digits or any of ._:/+=@- .
var requestIDRule = regexp.MustCompile(`^[A-Za-z0-9._:/+=@-]{1,64}$`)

// serve takes a request of the route from its headers to its answer and its line of the log.
func (a *api) serve(r route) gin.HandlerFunc {
	return func(ginContext *gin.Context) {
		c, began := &call{Context: ginContext, route: r}, time.Now()
		id := c.value(headerRequestID)
		if !requestIDRule.MatchString(id) {
			id = uuid.Must(uuid.NewV7()).String()
		}
		c.Header(headerRequestID, id)
		c.Header("Cache-Control", "no-store") // stock and orders change
		c.Header("X-Content-Type-Options", "nosniff")
		ctx := observe.WithRequest(c.Request.Context(), id)
		if a.Timeout > 0 && c.inAPI() { // its answer still gets out before the server's write timeout
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, a.Timeout)
			defer cancel()
		}
		c.Request = c.Request.WithContext(ctx)
		defer func() {
			if p := recover(); p != nil {
				a.fail(c, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
			a.report(c, time.Since(began))
		}()
		status, body, err := a.admit(c)
		switch {
		case err != nil:
			a.fail(c, err)
		case body != nil:
			c.answer(status, "application/json; charset=utf-8", body)
		}
	}
}

// inAPI tells requests that work from health checks, scrapes and profiles: those have no limit and may bring parameters
// of their own.
func (c *call) inAPI() bool { return strings.HasPrefix(c.route.path, "/v1/") }

// answer writes JSON. It fails only where the client is gone.
func (c *call) answer(status int, contentType string, body any) {
	c.Header("Content-Type", contentType)
	c.Status(status)
	_ = json.NewEncoder(c.Writer).Encode(body)
}

// limits of the requests in work, and with them of every queue behind.
type limits struct {
	inFlight atomic.Int64
	readers  atomic.Int64  // reads without a token, those that wait included
	reads    chan struct{} // has an element for each of them that runs
}

const (
	// readsPerCPU is how many reads without a token run at a time, for each CPU: more make none of them faster, and
	// orders slower.
	readsPerCPU = 4

	// readShare is the part of MaxInFlight that reads without a token have: one in so many.
	readShare = 4
)

// admit hands a request to its handler unless a limit, a missing token or its URL forbids that, in this sequence.
func (a *api) admit(c *call) (status int, body any, err error) {
	if a.MaxInFlight > 0 && c.inAPI() {
		defer a.inFlight.Add(-1)
		if a.inFlight.Add(1) > int64(a.MaxInFlight) {
			return 0, nil, errOverloaded
		}
	}
	if c.route.caller == reader {
		defer a.readers.Add(-1)
		if a.readers.Add(1) > max(1, int64(a.MaxInFlight/readShare)) && a.MaxInFlight > 0 {
			return 0, nil, errOverloaded
		}
		select {
		case a.reads <- struct{}{}:
			defer func() { <-a.reads }()
		case <-c.Request.Context().Done():
			return 0, nil, errOverloaded
		}
	}
	if err := a.identify(c); err != nil {
		return 0, nil, err
	}
	if c.route.caller == buyer && c.route.method == http.MethodPost {
		if err := a.Limiter.allow(c.Request.Context(), c.buyer); err != nil {
			return 0, nil, err
		}
	}
	if c.inAPI() {
		if err := checkURL(c); err != nil {
			return 0, nil, err
		}
	}
	return c.route.handle(c)
}

// caller is who may ask.
type caller int

const (
	anyone caller = iota
	reader        // anyone, but few at a time: reads need no token and must not slow orders down
	buyer
	operator
)

// identify finds the buyer, or refuses a request without the right token (RFC 6750).
func (a *api) identify(c *call) (err error) {
	realm := `Bearer realm="shop"`
	switch {
	case c.route.caller == operator:
		realm = `Bearer realm="shop operator"`
	case c.route.caller != buyer:
		return nil
	case a.Buyers == nil:
		c.buyer = cmp.Or(c.value("Shop-Buyer"), "guest")
		return order.CheckBuyer(c.buyer)
	}
	scheme, token, _ := strings.Cut(c.value("Authorization"), " ")
	shown := strings.EqualFold(scheme, "Bearer") && token != ""
	switch {
	case !shown:
		err = errNoToken
	case c.route.caller == buyer:
		c.buyer, err = a.Buyers.Verify(token)
		if err == nil && order.CheckBuyer(c.buyer) != nil {
			err = fmt.Errorf("%w: its sub is no buyer's name", auth.ErrToken)
		}
	case !a.operator.Token.Is(token):
		err = fmt.Errorf("%w: it is not the operator's", auth.ErrToken)
	}
	if err == nil {
		return nil
	}
	if shown {
		realm += `, error="invalid_token"`
	}
	c.Header("WWW-Authenticate", realm)
	if c.route.caller == operator {
		c.Writer.Header().Del("Allow") // gin has noted which methods a path takes
		if a.operator.Refused != nil {
			a.operator.Refused()
		}
	}
	return err
}

// report counts the answer, and writes the request's line: at level info for changes, debug for reads, refusals and
// what a crowd is turned away with, a warning or an error for the shop's own faults.
func (a *api) report(c *call, took time.Duration) {
	method, path, status := c.Request.Method, c.FullPath(), c.Writer.Status()
	if a.Observer != nil {
		a.Observer.Request(method, path, status, took)
		if c.route.caller == buyer && method == http.MethodPost {
			action, ends := strings.CutPrefix(path, "/v1/orders/:id/")
			if !ends {
				action = "place"
			}
			a.Observer.Order(action, cmp.Or(c.failure.slug, c.outcome))
		}
	}
	level := slog.LevelInfo
	switch r := c.failure; {
	case r.status == http.StatusInternalServerError:
		level = slog.LevelError
	case r.status > http.StatusInternalServerError && r.again != crowded:
		level = slog.LevelWarn
	case c.err != nil, method == http.MethodGet, method == http.MethodHead:
		level = slog.LevelDebug
	}
	ctx := c.Request.Context()
	if !a.Log.Enabled(ctx, level) {
		return // before the line is made: a thousand buyers who are turned away must cost nothing
	}
	line := []slog.Attr{
		slog.String("method", method), slog.String("path", c.Request.URL.Path), slog.Int("status", status), observe.Took(took),
	}
	if id := cmp.Or(c.orderID, c.Param("id")); id != "" {
		line = append(line, slog.String("order_id", id))
	}
	if c.err != nil {
		line = append(line, slog.String("problem", c.failure.slug), slog.Any("error", c.err))
	}
	a.Log.LogAttrs(ctx, level, "request", line...)
}

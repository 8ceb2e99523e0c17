package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	strictjson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/observe"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

const (
	headerKey       = "Idempotency-Key"
	headerReplayed  = "Idempotent-Replayed"
	headerRequestID = "X-Request-Id"
)

// call is a request, with the facts that the handlers collect for the log and the metrics.
type call struct {
	*gin.Context
	route   route
	reads   *reads // of the route; nil if it has no limit of its own
	buyer   string // of a request below /v1/orders
	orderID string // of a placed order
	payment string // the id of the payment in the request
	outcome string // of a successful change of an order: see Observer
	failure row    // of the table of errors; zero for none
	err     error  // why the request failed
	refund  bool   // the payment must be refunded
}

// value returns a header's value, empty if it is absent. A line break, which every check refuses, joins
// repeated values.
func (c *call) value(header string) string {
	return strings.Join(c.Request.Header.Values(header), "\n")
}

// requestIDRule is the rule for an X-Request-Id that is answered and logged: 1 to 64 letters, digits or
// any of ._:/+=@- .
var requestIDRule = regexp.MustCompile(`^[A-Za-z0-9._:/+=@-]{1,64}$`)

// serve returns the handler of a route: it sets the headers, admits the request, answers, and logs a line.
func (a *api) serve(r route) gin.HandlerFunc {
	limit := readsOf(r)
	return func(ginContext *gin.Context) {
		began := time.Now()
		c := &call{Context: ginContext, route: r, reads: limit}
		id := c.value(headerRequestID)
		if !requestIDRule.MatchString(id) {
			id = uuid.Must(uuid.NewV7()).String()
		}
		c.Header(headerRequestID, id)
		c.Header("Cache-Control", "no-store") // stock and orders change
		c.Header("X-Content-Type-Options", "nosniff")
		ctx := observe.WithRequest(c.Request.Context(), id)
		timeout := a.Timeout
		if r.caller == operator {
			timeout = a.OperatorTimeout
		}
		if timeout > 0 && c.route.inAPI() { // before the server's write timeout, so that the answer can be written
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
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

// reads limits the reads of one route, so that they leave room for orders and for the reads of other routes.
type reads struct {
	inFlight atomic.Int64
	running  chan struct{} // has an element for each running read; the other reads wait
}

const (
	// readsAtOnce reads of a buyers' route and operatorReadsAtOnce reads of an operator's route run at a time: all seven
	// routes leave five of the main pool's 32 connections; batches have their own pool. Audits leave a core for orders.
	readsAtOnce         = 6
	operatorReadsAtOnce = 1

	// readShare divides MaxInFlight: each route's reads have an eighth, and the reads of all four buyers'
	// routes have half.
	readShare = 8
)

// readsOf returns the limit of a route that reads the database, nil for any other route.
func readsOf(r route) *reads {
	switch {
	case r.caller == reader, r.caller == buyer && r.method == http.MethodGet:
		return &reads{running: make(chan struct{}, readsAtOnce)}
	case r.caller == operator && r.method == http.MethodGet && r.inAPI():
		return &reads{running: make(chan struct{}, operatorReadsAtOnce)}
	}
	return nil
}

// admit checks the token, the limits and the request, in this order, and calls the handler. The limit of one buyer
// comes before the limits of all buyers, so that one buyer cannot use them up.
func (a *api) admit(c *call) (status int, body any, err error) {
	if err := a.identify(c); err != nil {
		return 0, nil, err
	}
	limited := c.route.caller == buyer && a.Limiter != nil
	if limited {
		if err := a.Limiter.enter(c.buyer); err != nil {
			_ = order.Pause(c.Request.Context(), refusalPause)
			return 0, nil, err
		}
		defer a.Limiter.leave(c.buyer)
	}
	if a.MaxInFlight > 0 && c.route.inAPI() {
		defer a.inFlight.Add(-1)
		if a.inFlight.Add(1) > int64(a.MaxInFlight) {
			return 0, nil, errOverloaded
		}
	}
	if r := c.reads; r != nil {
		defer r.inFlight.Add(-1)
		if r.inFlight.Add(1) > max(1, int64(a.MaxInFlight/readShare)) && a.MaxInFlight > 0 {
			return 0, nil, errOverloaded
		}
		select {
		case r.running <- struct{}{}:
			defer func() { <-r.running }()
		case <-c.Request.Context().Done():
			return 0, nil, errOverloaded
		}
	}
	if limited && c.route.method == http.MethodPost {
		if err := a.Limiter.allow(c.Request.Context(), c.buyer); err != nil {
			return 0, nil, err
		}
	}
	if c.route.inAPI() {
		if err := check(c); err != nil {
			return 0, nil, err
		}
	}
	return c.route.handle(c)
}

// caller is the kind of client that may call a route.
type caller int

const (
	anyone caller = iota
	reader        // anyone, within the limits for reads
	buyer
	operator
	provider // a payment service, on behalf of the payment provider
)

// realm returns the realm of the caller's tokens, empty if the caller needs no token.
func (c caller) realm() string {
	return [...]string{buyer: "shop", operator: "shop operator", provider: "shop payments"}[c]
}

// identify sets the buyer, or refuses a request without the right token (RFC 6750).
func (a *api) identify(c *call) (err error) {
	realm := c.route.caller.realm()
	switch {
	case realm == "":
		return nil
	case c.route.caller == buyer && a.Identify != nil:
		if c.buyer, err = a.Identify(c.Request); err != nil {
			return err
		}
		return order.CheckBuyer(c.buyer)
	}
	scheme, token, _ := strings.Cut(c.value("Authorization"), " ")
	shown := strings.EqualFold(scheme, "Bearer") && token != ""
	switch {
	case !shown:
		err = errNoToken
	case len(c.Request.Header.Values("Authorization")) > 1:
		err = fmt.Errorf("%w: the header Authorization is repeated: send it once", auth.ErrToken)
	case c.route.caller == buyer:
		c.buyer, err = a.Buyers.Verify(token)
		if err == nil && order.CheckBuyer(c.buyer) != nil {
			err = fmt.Errorf("%w: its sub is not the name of a buyer: want "+order.BuyerRule, auth.ErrToken)
		}
	case c.route.caller == provider && !a.PaymentsToken.Is(token):
		err = fmt.Errorf("%w: it is not the payment service's token", auth.ErrToken)
	case c.route.caller == operator && !a.OperatorToken.Is(token):
		err = fmt.Errorf("%w: it is not the operator's token", auth.ErrToken)
	}
	if err == nil {
		return nil
	}
	challenge := fmt.Sprintf("Bearer realm=%q", realm)
	if shown {
		challenge += `, error="invalid_token"`
	}
	c.Header("WWW-Authenticate", challenge)
	if c.route.caller != buyer {
		c.Writer.Header().Del("Allow") // gin sets it, and it would reveal the routes
	}
	return err
}

// inAPI reports whether the limits and the check of the URL apply. Health checks, scrapes and profiles are exempt.
func (r route) inAPI() bool { return strings.HasPrefix(r.path, "/v1/") }

// check refuses repeated headers, impossible names of SKUs and ids of orders, and unknown or repeated
// query parameters: a mistyped filter must not be ignored.
func check(c *call) error {
	for _, header := range []string{headerKey, "Content-Type"} {
		if n := len(c.Request.Header.Values(header)); n > 1 {
			return fmt.Errorf("%w: the header %s is sent %d times: send it once", ErrMalformed, header, n)
		}
	}
	for _, p := range c.Params {
		switch {
		case p.Key == "sku" && !stock.ValidName(p.Value):
			return errNoSKU
		case p.Key == "id" && !validID(p.Value):
			return fmt.Errorf("order %.40q: %w", p.Value, order.ErrNotFound)
		case p.Key == "payment" && order.CheckPaymentID(p.Value) != nil:
			return order.ErrNoPayment
		}
	}
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return fmt.Errorf("%w: the query of the URL cannot be read", ErrMalformed)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(c.route.query, name):
			taken := cmp.Or(strings.Join(c.route.query, ", "), "none")
			return fmt.Errorf("%w: parameter %.40q: this call takes %s", ErrMalformed, name, taken)
		case len(values[name]) > 1:
			return fmt.Errorf("%w: parameter %s is sent %d times: send it once", ErrMalformed, name, len(values[name]))
		}
	}
	return nil
}

// validID accepts only the canonical form of a UUID, since a database may compare strings less strictly.
func validID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.String() == id
}

// maxBody is the greatest size of a request's body, in bytes.
const maxBody = 64 << 10

// noBody is for calls without a body. Some clients send an empty object, which is allowed.
type noBody struct{}

// decode reads the body, a JSON object in UTF-8 without unknown fields, repeated fields or null, into the struct at v.
func decode(c *call, v any) error {
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	_, mayBeEmpty := v.(*noBody)
	switch {
	case tooLarge:
		return fmt.Errorf("%w: at most %d bytes are allowed", errTooLarge, maxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlowBody
	case err != nil:
		return fmt.Errorf("%w: the body ends too early", ErrMalformed)
	case mayBeEmpty && len(body) == 0:
		return nil
	}
	kind, parameters, err := mime.ParseMediaType(c.value("Content-Type"))
	charset := strings.ToLower(cmp.Or(parameters["charset"], "utf-8"))
	coding := cmp.Or(c.value("Content-Encoding"), "identity")
	if err != nil || kind != "application/json" || charset != "utf-8" && charset != "utf8" || coding != "identity" {
		return fmt.Errorf("%w: want the header Content-Type: application/json, UTF-8, and no Content-Encoding", errMediaType)
	}
	if len(body) == 0 {
		return fmt.Errorf("%w: the body is empty: want a JSON object", ErrMalformed)
	}
	if err := strictjson.Unmarshal(body, v, strictly); err != nil {
		return fmt.Errorf("%w: body: %s", ErrMalformed, explain(err))
	}
	return nil
}

// strictly refuses unknown fields and any null. json refuses repeated fields, "SKU" for "sku", and invalid UTF-8.
var strictly = strictjson.JoinOptions( //nolint:gochecknoglobals // a constant
	strictjson.RejectUnknownMembers(true),
	strictjson.WithUnmarshalers(strictjson.UnmarshalFromFunc(func(d *jsontext.Decoder, _ any) error {
		if d.PeekKind() == jsontext.KindNull {
			return errNull
		}
		return errors.ErrUnsupported // json then decodes the value itself
	})),
)

var errNull = errors.New("null is not allowed: leave the field out")

// explain says what is wrong without naming types of this program.
func explain(err error) string {
	if wrong, ok := errors.AsType[*strictjson.SemanticError](err); ok {
		switch kind := wrong.GoType.Kind(); {
		case kind == reflect.Int64 && !errors.Is(err, errNull):
			wrong.Err = errors.New("want a whole number of at most 18 digits")
		case kind == reflect.Struct && wrong.Err == nil:
			wrong.Err = errors.New("want a JSON object")
		}
		wrong.GoType = nil
	}
	_, text, _ := strings.Cut(err.Error(), ": ") // behind the package's name
	if action, ok := strings.CutPrefix(text, "unable to "); ok {
		text = "cannot " + action // the package says one or the other, by process
	}
	return fmt.Sprintf("%.200s", text)
}

// answer writes JSON. Encoding fails only if the client has disconnected.
func (c *call) answer(status int, contentType string, body any) {
	c.Header("Content-Type", contentType)
	c.Status(status)
	_ = json.NewEncoder(c.Writer).Encode(body)
}

// report counts the answer and writes the request's line of the log: at level info for changes, debug for reads,
// refusals and problems of overload, warning or error for other faults of the shop.
func (a *api) report(c *call, took time.Duration) {
	method, path, status := c.Request.Method, c.FullPath(), c.Writer.Status()
	if a.Observer != nil && (a.others != operator || c.route.caller == provider) { // requests of the operator are not counted
		a.Observer.Request(method, path, status, took)
		if c.route.action != "" {
			a.Observer.Order(c.route.action, cmp.Or(c.failure.slug, c.outcome))
		}
	}
	level := slog.LevelInfo
	switch {
	case c.failure.status == http.StatusInternalServerError:
		level = slog.LevelError
	case c.failure.status > http.StatusInternalServerError && c.failure.retry != crowded, c.refund:
		level = slog.LevelWarn
	case c.err != nil, method == http.MethodGet, method == http.MethodHead:
		level = slog.LevelDebug
	}
	ctx := c.Request.Context()
	if !a.Log.Enabled(ctx, level) {
		return // without building the line: refusals must stay cheap under load
	}
	line := []slog.Attr{
		slog.String("method", method), slog.String("path", c.Request.URL.Path), slog.Int("status", status), observe.Took(took),
	}
	if id := cmp.Or(c.orderID, c.Param("id")); id != "" {
		line = append(line, slog.String("order_id", id))
	}
	if c.payment != "" {
		line = append(line, slog.String("payment_id", c.payment))
	}
	if c.err != nil {
		line = append(line, slog.String("problem", c.failure.slug), slog.Any("error", c.err))
	}
	a.Log.LogAttrs(ctx, level, "request", line...)
}

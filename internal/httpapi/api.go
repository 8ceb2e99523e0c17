package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Orders places, finds and ends orders. *order.Service does.
type Orders interface {
	Place(ctx context.Context, r order.Request) (placed order.Order, replayed bool, err error)
	Order(ctx context.Context, buyer, id string) (order.Order, error)
	Orders(ctx context.Context, buyer, before string, limit int) ([]order.Order, error)
	Pay(ctx context.Context, r order.EndRequest) (order.Ended, error)
	Cancel(ctx context.Context, r order.EndRequest) (order.Ended, error)
}

// Stock keeps SKUs. List returns at most limit, in the sequence of their names, those
// behind after.
type Stock interface {
	SKU(ctx context.Context, name string) (stock.SKU, error)
	List(ctx context.Context, after string, limit int) ([]stock.SKU, error)
	Create(ctx context.Context, sku stock.SKU) error
}

// Auditor compares levels, ledger and orders, of one SKU or, for an empty name, of all. It
// calls account once for each SKU, and difference for each broken invariant.
type Auditor interface {
	Audit(ctx context.Context, sku string, account func(stock.Account) error, difference func(stock.Difference) error) error
}

// Buyers knows buyers by their tokens. *auth.Tokens does. An error that the token is to
// blame for is an auth.ErrToken.
type Buyers interface {
	Verify(token string) (buyer string, err error)
}

// Observer counts answers. *observe.Metrics is one.
type Observer interface {
	// Request has been answered. The route is the pattern of its path, empty if none matched.
	Request(method, route string, status int, took time.Duration)

	// Order has been asked to be placed, paid or cancelled: action is place, pay or cancel. The
	// outcome is placed, paid, cancelled, or replayed for what was so before, or else the last
	// part of the problem's type.
	Order(action, outcome string)
}

// Config is what the buyers' API needs.
type Config struct {
	Orders  Orders
	Stock   Stock
	Auditor Auditor // for teaching mode alone

	Checks   []Check
	Draining func() bool // true once the shop shuts down; may be nil

	// Buyers verifies the tokens of requests below /v1/orders. If it is nil, the header
	// Shop-Buyer is believed.
	Buyers Buyers

	Limiter     *Limiter // of changes by one buyer; nil for none
	MaxInFlight int      // requests at a time, health checks aside; 0 for no limit

	Lab     *Lab          // teaching mode; nil if it is off
	Timeout time.Duration // of a request; 0 for none

	Log      *slog.Logger    // gets a line for each request
	Observer Observer        // nil for none
	Trace    gin.HandlerFunc // around everything else; nil for none
}

// New returns the handler of the buyers' API.
func New(c Config) (http.Handler, error) {
	if c.Orders == nil || c.Stock == nil || c.Log == nil || c.Lab != nil && c.Auditor == nil {
		return nil, errors.New("httpapi: Config needs Orders, Stock and Log, and in teaching mode an Auditor")
	}
	a := &api{Config: c, errors: errorTable(), ready: readiness{checks: c.Checks}, reads: make(chan struct{}, readsPerCPU*runtime.GOMAXPROCS(0))}
	engine := a.engine()
	engine.Use(a.limitInFlight, a.limitTime)
	for _, r := range a.routes() {
		a.handle(engine, r)
	}
	return engine, nil
}

type api struct {
	Config
	errors   []row
	ready    readiness
	inFlight atomic.Int64
	readers  atomic.Int64  // reads without a token, those that wait included
	reads    chan struct{} // has an element for each of them that runs
}

// handler answers a request with a status and a body that becomes JSON, or fails.
type handler func(c *gin.Context) (status int, body any, err error)

// route is a row of the table of what is answered.
type route struct {
	method, path string
	who          gin.HandlerFunc // identifies the buyer, or bounds reads without one; nil for neither
	handle       handler
	query        []string // parameters of the URL that it takes
}

// routes is everything that the buyers' API answers.
func (a *api) routes() []route {
	buyer, reader, inPages := a.knowBuyer, a.limitReads, []string{"cursor", "limit"}
	table := []route{
		{"POST", "/v1/orders", buyer, a.placeOrder, nil},
		{"GET", "/v1/orders", buyer, a.listOrders, inPages},
		{"GET", "/v1/orders/:id", buyer, a.getOrder, nil},
		{"POST", "/v1/orders/:id/pay", buyer, a.endOrder(a.Orders.Pay), nil},
		{"POST", "/v1/orders/:id/cancel", buyer, a.endOrder(a.Orders.Cancel), nil},
		{"GET", "/v1/skus", reader, a.listSKUs, inPages},
		{"GET", "/v1/skus/:sku", reader, a.getSKU, nil},
		{"GET", "/v1/strategies", nil, a.listStrategies, nil},
		{"GET", "/openapi.yaml", nil, a.document, nil},
		{"GET", pathHealthz, nil, healthz, nil},
		{"GET", pathReadyz, nil, a.readyz, nil},
	}
	if a.Lab != nil {
		table = append(table,
			route{"GET", "/v1/audit", nil, a.audit, []string{"sku"}},
			route{"POST", "/v1/skus", nil, a.createSKU, nil},
			route{"GET", "/v1/tapes/:tape", nil, a.getTape, []string{"seen"}},
			route{"POST", "/v1/tapes/:tape/resume", nil, a.resumeTape, nil},
		)
	}
	return table
}

// engine returns one that observes every request, and answers what it has no route for
// with a problem.
func (a *api) engine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode) // before New, which prints in any other mode
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	engine.UseRawPath = true // /v1%2forders is not /v1/orders
	engine.NoRoute(func(c *gin.Context) { a.fail(c, errNoRoute) })
	engine.NoMethod(func(c *gin.Context) { a.fail(c, errNoMethod) })
	if a.Trace != nil {
		engine.Use(a.Trace)
	}
	engine.Use(a.observe, a.recoverPanics)
	return engine
}

// handle adds a route; one of GET answers HEAD, too. Below /v1/ it refuses parameters of
// the URL that the route does not take; probes, profiles and scrapes may bring their own.
func (a *api) handle(engine *gin.Engine, r route) {
	var chain []gin.HandlerFunc
	if r.who != nil {
		chain = append(chain, r.who)
	}
	chain = append(chain, func(c *gin.Context) {
		if strings.HasPrefix(r.path, "/v1/") {
			if err := checkQuery(c.Request.URL.RawQuery, r.query); err != nil {
				a.fail(c, err)
				return
			}
		}
		status, body, err := r.handle(c)
		if err == nil && body != nil {
			err = write(c, status, "application/json; charset=utf-8", body)
		}
		if err != nil {
			a.fail(c, err)
		}
	})
	engine.Handle(r.method, r.path, chain...)
	if r.method == http.MethodGet {
		engine.Handle(http.MethodHead, r.path, chain...)
	}
}

// write answers with JSON.
func write(c *gin.Context, status int, contentType string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	c.Data(status, contentType, append(text, '\n'))
	return nil
}

package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Orders places, finds and ends orders, and accepts the reports of a payment provider. *order.Service implements it.
type Orders interface {
	Place(ctx context.Context, r order.Request) (placed order.Order, replayed bool, err error)
	Order(ctx context.Context, buyer, id string) (order.Order, error)
	Orders(ctx context.Context, buyer, before string, limit int) ([]order.Order, error)
	Pay(ctx context.Context, r order.EndRequest) (order.Ended, error)
	Cancel(ctx context.Context, r order.EndRequest) (order.Ended, error)

	TakePayment(ctx context.Context, p order.Payment) (order.Ended, error)
	PaymentFailed(ctx context.Context, orderID string, release bool) (order.Order, error)
	Extend(ctx context.Context, orderID string) (order.Order, error)
}

// Store keeps SKUs with their ledger, and payments. *store.Store implements it. Lists return at most limit items that
// follow the item after: SKUs by name, movements by age, the earliest first, and payments by id.
type Store interface {
	SKU(ctx context.Context, name string) (stock.SKU, error)
	List(ctx context.Context, after string, limit int) ([]stock.SKU, error)
	Create(ctx context.Context, skus ...stock.SKU) error
	Supply(ctx context.Context, d stock.Delivery) (after stock.SKU, replayed bool, err error)
	SetLimitPerBuyer(ctx context.Context, sku string, perBuyer int64) (after stock.SKU, err error)
	Movements(ctx context.Context, sku, after string, limit int) ([]stock.Movement, error)

	Payments(ctx context.Context, list order.PaymentList, after string, limit int) ([]order.Payment, error)
	Refunded(ctx context.Context, id string) (order.Payment, error)
	RefundFailed(ctx context.Context, id string) (order.Payment, error)

	// Audit compares levels, ledger and orders of one SKU or, if the name is empty, of all SKUs. It calls account for
	// each SKU, and difference for each broken invariant.
	Audit(ctx context.Context, sku string, account func(stock.Account) error, difference func(stock.Difference) error) error
}

// Observer counts answers. *observe.Metrics is one.
type Observer interface {
	// Request counts an answered request. route is the pattern that the path matched, empty for none.
	Request(method, route string, status int, took time.Duration)

	// Order counts a request to change an order or its payment. The action of a buyer is place, cancel or buyers-pay; of a
	// payment service pay, payment-failed, extend, refund or refund-failed. The outcome is placed, paid, cancelled, noted,
	// extended or refunded; replayed if an earlier request had the same outcome; or, after a failure, the last part of the
	// problem's type.
	Order(action, outcome string)
}

// Config is for both APIs. Orders, Store, Log and one of Buyers and Identify are required. Other parts may be left out.
type Config struct {
	Orders Orders
	Store  Store

	// The buyer of a request below /v1/orders comes from Identify or, without Identify, is the subject of a token.
	Buyers   *auth.Tokens
	Identify func(*http.Request) (buyer string, err error)

	OperatorToken auth.Secret
	PaymentsToken auth.Secret // of the payment service
	BuyersPay     bool        // buyers may pay without a payment service

	Checks   []Check
	Primary  func() (host string, changes int, err error) // the host of the database that takes writes; nil if there is one host
	Draining func() bool                                  // returns true once the shop shuts down

	Limiter         *Limiter      // of the requests of one buyer
	MaxInFlight     int           // requests below /v1/ at a time, of each API
	Timeout         time.Duration // of a request below /v1/
	OperatorTimeout time.Duration // of a request of the operator

	Log      *slog.Logger    // gets a line for each request
	Observer Observer        // of the requests of buyers and payment services
	Trace    gin.HandlerFunc // middleware around all handlers of the buyers' API
	Metrics  http.Handler    // of GET /metrics
}

// New returns the handler of the buyers' API.
func New(c Config) http.Handler {
	a := &api{Config: c, errors: errorTable(), ready: readiness{checks: c.Checks, turn: make(chan struct{}, 1)}}
	inPages := []string{"cursor", "limit"}
	return a.engine(anyone, []route{
		{"POST", "/v1/orders", buyer, "place", a.placeOrder, nil},
		{"GET", "/v1/orders", buyer, "", a.listOrders, inPages},
		{"GET", "/v1/orders/:id", buyer, "", a.getOrder, nil},
		{"POST", "/v1/orders/:id/pay", buyer, "buyers-pay", a.payOrder, nil},
		{"POST", "/v1/orders/:id/cancel", buyer, "cancel", a.cancelOrder, nil},
		{"GET", "/v1/skus", reader, "", a.listSKUs, inPages},
		{"GET", "/v1/skus/:sku", reader, "", a.getSKU, nil},
		{"GET", "/openapi.yaml", anyone, "", document, nil},
		{"GET", pathHealthz, anyone, "", healthz, nil},
		{"GET", pathReadyz, anyone, "", a.readyz, nil},
	})
}

// NewOperator returns the handler of the operator's API, for a listener of its own.
func NewOperator(c Config) http.Handler {
	c.Trace = nil
	a := &api{Config: c, errors: errorTable()}
	return a.engine(operator, []route{
		{"POST", "/v1/skus", operator, "", a.createSKU, nil},
		{"PATCH", "/v1/skus/:sku", operator, "", a.changeSKU, nil},
		{"POST", "/v1/skus/:sku/movements", operator, "", a.restock, nil},
		{"GET", "/v1/skus/:sku/movements", operator, "", a.listMovements, []string{"cursor", "limit"}},
		{"GET", "/v1/audit", operator, "", a.audit, []string{"sku"}},
		{"GET", "/v1/payments", operator, "", a.listPayments, []string{"cursor", "limit", "refunded", "refused"}},
		{"POST", "/v1/orders/:id/pay", provider, "pay", a.takePayment, nil},
		{"POST", "/v1/orders/:id/payment-failed", provider, "payment-failed", a.paymentFailed, nil},
		{"POST", "/v1/orders/:id/extend", provider, "extend", a.extendOrder, nil},
		{"POST", "/v1/payments/:payment/refunded", provider, "refund", a.paymentRefunded, nil},
		{"POST", "/v1/payments/:payment/refund-failed", provider, "refund-failed", a.refundFailed, nil},
		{"GET", "/metrics", operator, "", a.metrics, nil},
		{"GET", "/debug/pprof/", operator, "", profile, nil},
		{"GET", "/debug/pprof/:profile", operator, "", profile, nil},
		{"GET", pathHealthz, anyone, "", healthz, nil},
	})
}

// api answers the requests of one listener.
type api struct {
	Config
	others   caller // who may ask for a path that does not exist
	errors   []row
	inFlight atomic.Int64 // requests below /v1/ that run or wait
	ready    readiness
}

// route is a row of the table of routes. A handler returns an error, or a status and a body to encode as JSON. The body
// is nil if the handler has written the answer itself.
type route struct {
	method, path string
	caller       caller
	action       string // on an order, for the metrics; empty for none
	handle       func(c *call) (status int, body any, err error)
	query        []string // parameters that the query of the URL may have
}

// engine serves these routes, each GET also as HEAD. It answers any other request with a problem, once the request has
// passed the checks for the caller others.
func (a *api) engine(others caller, routes []route) http.Handler {
	a.others = others
	gin.SetMode(gin.ReleaseMode) // before New, which prints in any other mode
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	engine.UseRawPath = true // /v1%2forders is not /v1/orders
	if a.Trace != nil {
		engine.Use(a.Trace)
	}
	fail := func(err error) gin.HandlerFunc {
		return a.serve(route{caller: others, handle: func(*call) (int, any, error) { return 0, nil, err }})
	}
	engine.NoRoute(fail(errNoRoute))
	engine.NoMethod(fail(errNoMethod))
	for _, r := range routes {
		handler := a.serve(r)
		engine.Handle(r.method, r.path, handler)
		if r.method == http.MethodGet {
			engine.Handle(http.MethodHead, r.path, handler)
		}
	}
	return engine
}

package orderhttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/tape"
)

// Orders takes, finds and ends orders. *order.Service does.
type Orders interface {
	Place(ctx context.Context, r order.Request) (placed order.Order, replayed bool, err error)
	SoldOut(r order.Request) bool // Place would refuse it without asking anybody
	Order(ctx context.Context, buyer, id string) (order.Order, error)
	Orders(ctx context.Context, buyer, before string, limit int) ([]order.Order, error)
	Pay(ctx context.Context, r order.EndRequest) (order.Ended, error)
	Cancel(ctx context.Context, r order.EndRequest) (order.Ended, error)
}

// Stock keeps SKUs. List returns at most limit, in the order of their names,
// those after the one called after.
type Stock interface {
	SKU(ctx context.Context, name string) (stock.SKU, error)
	List(ctx context.Context, after string, limit int) ([]stock.SKU, error)
	Create(ctx context.Context, sku stock.SKU) error
}

// Auditor compares levels, ledger and orders, of one SKU or, for an empty name,
// of all. It calls account once for each SKU and difference for whatever is
// broken.
type Auditor interface {
	Audit(ctx context.Context, sku string, account func(stock.Account) error, difference func(stock.Difference) error) error
}

// Check is something that must answer for the shop to be ready. Ping is called by one
// goroutine at a time, about once in a second while anybody asks, and returns when ctx
// ends, which is soon. It logs what is to be logged of it.
type Check struct {
	Name string
	Ping func(ctx context.Context) error
}

// Servers are the name and version of each, such as "MySQL 9.1.0".
type Servers struct {
	Database, Redis string
}

// Config is what the buyers' API needs.
type Config struct {
	Orders  Orders
	Stock   Stock
	Auditor Auditor

	Checks   []Check
	Draining func() bool // true once the shop shuts down; may be nil

	// Buyers, if there are any, is asked for the buyer of each request below
	// /v1/orders. With nil the header Shop-Buyer is believed.
	Buyers Buyers

	// Limiter, if there is one, counts the POSTs of each buyer below /v1/orders.
	Limiter Limiter

	// MaxInFlight is how many requests are worked on or wait at a time, health
	// checks aside; 0 means no limit.
	MaxInFlight int

	// Missing tells why this shop cannot sell by the strategy of this name, nothing
	// if it can; nil: it can by all.
	Missing func(strategy string) (why string)

	Lab     bool          // teaching mode, which has the operator's audit and SKUs here, too
	Tapes   *tape.Shelf   // of teaching mode: what requests do that ask to be recorded
	Servers Servers       // that teaching mode names
	Timeout time.Duration // for one request; 0 means none

	// Log gets a line for each request. Its handler adds the request's id if it is
	// one of package logs.
	Log *slog.Logger

	Observer Observer        // nil for none
	Trace    gin.HandlerFunc // goes around everything else; nil for none
}

// New returns the handler of the buyers' API.
func New(c Config) (http.Handler, error) {
	if c.Orders == nil || c.Stock == nil || c.Auditor == nil || c.Log == nil {
		return nil, errors.New("orderhttp: Config needs Orders, Stock, Auditor and Log")
	}
	if c.Lab && c.Tapes == nil {
		return nil, errors.New("orderhttp: teaching mode needs Config.Tapes")
	}
	a := &api{Config: c, errors: errorTable(), readiness: readiness{checks: c.Checks}}
	engine := a.engine()
	engine.Use(a.recoverPanics, plainHeaders, a.limitInFlight, a.limitTime, a.knowBuyer, a.limitRate)
	a.handle(engine, a.routes())
	return engine, nil
}

type api struct {
	Config
	errors    table
	readiness readiness
	inFlight  atomic.Int64
	peeks     atomic.Int64 // orders that are read before they are counted
	bodies    bodies
}

// handle adds routes; those of GET answer HEAD, too. Below /v1/ it refuses
// parameters that a route does not take; probes, profiles and scrapes may bring
// their own.
func (a *api) handle(engine *gin.Engine, routes []route) {
	for _, r := range routes {
		handlers := []gin.HandlerFunc{r.handle}
		if strings.HasPrefix(r.path, "/v1/") {
			handlers = []gin.HandlerFunc{a.wantQuery(r.query), r.handle}
		}
		engine.Handle(r.method, r.path, handlers...)
		if r.method == http.MethodGet {
			engine.Handle(http.MethodHead, r.path, handlers...)
		}
	}
}

// engine returns one that observes every request, and answers what it has no route
// for with a problem.
func (a *api) engine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode) // before New, which prints in any other mode
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	engine.NoRoute(func(c *gin.Context) { a.fail(c, errNoRoute) })
	engine.NoMethod(func(c *gin.Context) { a.fail(c, errNoMethod) })
	if a.Trace != nil {
		engine.Use(a.Trace)
	}
	engine.Use(a.observe)
	return engine
}

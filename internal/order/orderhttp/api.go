package orderhttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Orders takes and finds orders. *order.Service does.
type Orders interface {
	Place(ctx context.Context, r order.Request) (placed order.Order, replayed bool, err error)
	Order(ctx context.Context, buyer, id string) (order.Order, error)
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

// Check is something that must answer for the shop to be ready.
type Check struct {
	Name string
	Ping func(ctx context.Context) error
}

// Config is what the API needs.
type Config struct {
	Orders  Orders
	Stock   Stock
	Auditor Auditor

	Checks   []Check
	Draining func() bool // true once the shop shuts down; may be nil

	Lab     bool          // teaching mode
	Timeout time.Duration // for one request; 0 means none
	Log     *slog.Logger
}

// New returns the handler of the whole API.
func New(c Config) (http.Handler, error) {
	if c.Orders == nil || c.Stock == nil || c.Auditor == nil || c.Log == nil {
		return nil, errors.New("orderhttp: Config needs Orders, Stock, Auditor and Log")
	}
	gin.SetMode(gin.ReleaseMode) // before New, which prints in any other mode
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	a := &api{Config: c, errors: errorTable()}
	engine.Use(a.recoverPanics, a.limitTime, plainHeaders)
	engine.NoRoute(func(c *gin.Context) { a.fail(c, errNoRoute) })
	engine.NoMethod(func(c *gin.Context) { a.fail(c, errNoMethod) })
	for _, r := range a.routes() {
		engine.Handle(r.method, r.path, r.handle)
		if r.method == http.MethodGet {
			engine.Handle(http.MethodHead, r.path, r.handle)
		}
	}
	return engine, nil
}

type api struct {
	Config
	errors table
}

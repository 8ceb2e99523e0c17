package orderhttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/stock"
)

// OperatorStock is Stock with its ledger. *stockstore.Store is one.
type OperatorStock interface {
	Stock
	Supply(ctx context.Context, d stock.Delivery) (after stock.SKU, replayed bool, err error)
	SetLimitPerBuyer(ctx context.Context, sku string, perBuyer int64) (after stock.SKU, err error)
	Movements(ctx context.Context, sku, after string, limit int) ([]stock.Movement, error)
}

// OperatorConfig is what the operator's API needs.
type OperatorConfig struct {
	Token   auth.Secret // whoever shows it is the operator
	Stock   OperatorStock
	Auditor Auditor
	Metrics http.Handler // of GET /metrics; nil: it is not there

	Timeout time.Duration // for one request, except a profile; 0 means none
	Log     *slog.Logger
}

// NewOperator returns the handler of the operator's API, for a listener of its
// own.
func NewOperator(c OperatorConfig) (http.Handler, error) {
	if c.Token.IsZero() || c.Stock == nil || c.Auditor == nil || c.Log == nil {
		return nil, errors.New("orderhttp: OperatorConfig needs Token, Stock, Auditor and Log")
	}
	o := &operator{
		api:   &api{Config: Config{Stock: c.Stock, Auditor: c.Auditor, Timeout: c.Timeout, Log: c.Log}, errors: errorTable()},
		stock: c.Stock,
		token: c.Token,
	}
	engine := o.engine()
	engine.Use(o.recoverPanics, plainHeaders, o.knowOperator)
	o.handle(engine, []route{{http.MethodGet, "/debug/pprof/", o.profile, nil}, {http.MethodGet, "/debug/pprof/:profile", o.profile, nil}})
	engine.Use(o.limitTime) // for what follows: a profile takes as long as it is asked to
	o.handle(engine, o.routes())
	if c.Metrics != nil {
		o.handle(engine, []route{{http.MethodGet, "/metrics", gin.WrapH(c.Metrics), nil}})
	}
	return engine, nil
}

// operator answers with the buyers' API's handlers and some of its own.
type operator struct {
	*api
	stock OperatorStock
	token auth.Secret
}

// routes is the table of what the operator's API answers, beside profiles and
// metrics.
func (o *operator) routes() []route {
	return []route{
		{http.MethodPost, "/v1/skus", o.createSKU, nil},
		{http.MethodPatch, "/v1/skus/:sku", o.changeSKU, nil},
		{http.MethodPost, "/v1/skus/:sku/movements", o.restock, nil},
		{http.MethodGet, "/v1/skus/:sku/movements", o.listMovements, inPages()},
		{http.MethodGet, "/v1/audit", o.audit, []string{"sku"}},
		{http.MethodGet, pathHealthz, o.healthz, nil},
	}
}

package httpapi

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"
	runtime "runtime/pprof"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/auth"
)

// OperatorConfig is what the operator's API needs.
type OperatorConfig struct {
	Token   auth.Secret // a request that shows it is the operator's
	Stock   OperatorStock
	Auditor Auditor
	Metrics http.Handler // of GET /metrics; nil: it is not there

	Timeout time.Duration // for one request, except a profile; 0 means none
	Log     *slog.Logger
	Refused func() // is called for each request without the operator's token; may be nil
}

// NewOperator returns the handler of the operator's API, for a listener of its own.
func NewOperator(c OperatorConfig) (http.Handler, error) {
	if c.Token.IsZero() || c.Stock == nil || c.Auditor == nil || c.Log == nil {
		return nil, errors.New("httpapi: OperatorConfig needs Token, Stock, Auditor and Log")
	}
	o := &operator{
		api:    &api{Config: Config{Stock: c.Stock, Auditor: c.Auditor, Timeout: c.Timeout, Log: c.Log}, errors: errorTable()},
		config: c,
		stock:  c.Stock,
	}
	engine := o.engine()
	engine.Use(o.knowOperator)
	o.handle(engine, route{"GET", "/debug/pprof/", nil, o.profile, nil})
	o.handle(engine, route{"GET", "/debug/pprof/:profile", nil, o.profile, nil})
	engine.Use(o.limitTime) // for what follows: a profile takes as long as it is asked to
	for _, r := range []route{
		{"POST", "/v1/skus", nil, o.createSKU, nil},
		{"PATCH", "/v1/skus/:sku", nil, o.changeSKU, nil},
		{"POST", "/v1/skus/:sku/movements", nil, o.restock, nil},
		{"GET", "/v1/skus/:sku/movements", nil, o.listMovements, []string{"cursor", "limit"}},
		{"GET", "/v1/audit", nil, o.audit, []string{"sku"}},
		{"GET", pathHealthz, nil, healthz, nil},
	} {
		o.handle(engine, r)
	}
	if c.Metrics != nil {
		o.handle(engine, route{"GET", "/metrics", nil, o.metrics, nil})
	}
	return engine, nil
}

// operator answers with handlers of the buyers' API and some of its own.
type operator struct {
	*api
	config OperatorConfig
	stock  OperatorStock
}

// knowOperator refuses a request without the operator's token, before anything else of the request is
// read, also where nothing is to be found.
func (o *operator) knowOperator(c *gin.Context) {
	if c.FullPath() == pathHealthz {
		return
	}
	token, err := bearer(c, "shop operator")
	if err == nil && !o.config.Token.Is(token) {
		c.Header("WWW-Authenticate", `Bearer realm="shop operator", error="invalid_token"`)
		err = errBadToken
	}
	if err != nil {
		c.Writer.Header().Del("Allow") // gin has noted which methods a path takes
		if o.config.Refused != nil {
			o.config.Refused()
		}
		o.fail(c, err)
	}
}

func (o *operator) metrics(c *gin.Context) (int, any, error) {
	o.config.Metrics.ServeHTTP(c.Writer, c.Request)
	return 0, nil, nil
}

// profile answers what `go tool pprof` asks for, below /debug/pprof/. The command line is not
// told: it may hold the database's password. A profile moves the write deadline of its own
// connection as far as it needs.
func (o *operator) profile(c *gin.Context) (int, any, error) {
	name := c.Param("profile")
	answer := map[string]http.HandlerFunc{"profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace}[name]
	switch {
	case answer != nil:
	case name == "" || runtime.Lookup(name) != nil:
		answer = pprof.Index
	default:
		return 0, nil, errNoRoute
	}
	answer(c.Writer, c.Request)
	return 0, nil, nil
}

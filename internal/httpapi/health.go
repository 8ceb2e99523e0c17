package httpapi

import (
	"context"
	_ "embed" // for the document
	"fmt"
	"net/http"
	"net/http/pprof"
	runtime "runtime/pprof"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// Paths of the health checks.
const (
	pathHealthz = "/healthz"
	pathReadyz  = "/readyz"
)

// IsHealthCheck reports whether a route is a health check, which load balancers call every second.
func IsHealthCheck(route string) bool { return route == pathHealthz || route == pathReadyz }

// healthz answers that the process lives.
func healthz(*call) (int, any, error) { return http.StatusOK, gin.H{"status": "ok"}, nil }

// readyz answers whether this instance can take orders.
func (a *api) readyz(c *call) (int, any, error) {
	if a.Draining != nil && a.Draining() {
		return 0, nil, fmt.Errorf("%w: this instance is shutting down", errNotReady)
	}
	without, err := a.ready.check(c.Request.Context())
	if err != nil {
		return 0, nil, err
	}
	ready := gin.H{"status": "ready"}
	if without != nil {
		ready["without"] = without
	}
	if a.Primary != nil {
		ready["primary"], _, _ = a.Primary()
	}
	return http.StatusOK, ready, nil
}

// Check checks a server. The shop is ready if the server can do its part of an order, or if the check is Optional. Try
// is called by one goroutine at a time, at most once a second, and returns when ctx ends. Its error names the server.
type Check struct {
	Name     string
	Optional bool
	Try      func(ctx context.Context) error
}

const (
	readyTimeout    = 2 * time.Second        // of a check
	optionalTimeout = 500 * time.Millisecond // of an optional check: load balancers often wait for only a second
	readyEvery      = time.Second            // from the end of a round to the beginning of the next
)

// readiness runs all checks in a round, at most one round a second. Concurrent requests share the result of a round, so
// that any number of requests costs each server one try.
type readiness struct {
	checks []Check

	turn    chan struct{} // a mutex of capacity 1, held while a request runs a round or reads the result
	ended   time.Time     // when the last round ended
	without []string      // optional checks that failed in the last round
	result  error         // of the last round
}

// check returns the optional checks that failed, and an errNotReady if another check failed. A round
// goes on even if the client that began it disconnects.
func (r *readiness) check(ctx context.Context) (without []string, err error) {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if time.Since(r.ended) < readyEvery {
		return r.without, r.result
	}
	errs := make([]error, len(r.checks))
	var wait sync.WaitGroup
	for i, check := range r.checks {
		limit := readyTimeout
		if check.Optional {
			limit = optionalTimeout
		}
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
			defer cancel()
			errs[i] = check.Try(ctx)
		})
	}
	wait.Wait()
	r.ended, r.without, r.result = time.Now(), nil, nil
	var failing, reasons []string
	for i, err := range errs {
		switch {
		case err == nil:
		case r.checks[i].Optional:
			r.without = append(r.without, r.checks[i].Name)
		default:
			failing = append(failing, r.checks[i].Name)
			reasons = append(reasons, fmt.Sprintf("%.500s", err.Error()))
		}
	}
	if failing != nil {
		r.result = notReadyError{error: fmt.Errorf("%w: %s", errNotReady, strings.Join(reasons, "; ")), failing: failing}
	}
	return r.without, r.result
}

// OpenAPI is the API's contract, an OpenAPI 3.1 document in YAML. Do not change it.
//
//go:embed openapi.yaml
var OpenAPI []byte

func document(c *call) (int, any, error) {
	c.Data(http.StatusOK, "application/yaml", OpenAPI)
	return 0, nil, nil
}

func (a *api) metrics(c *call) (int, any, error) {
	a.Metrics.ServeHTTP(c.Writer, c.Request)
	return 0, nil, nil
}

// profile answers in the format of `go tool pprof`, without the command line, which may have the database's password.
func profile(c *call) (int, any, error) {
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

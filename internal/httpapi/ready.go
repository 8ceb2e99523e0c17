package httpapi

import (
	"context"
	"net/http"
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

// IsHealthCheck reports whether a request with this route asks how the shop does, as load
// balancers do every second: it counts for no limit and makes no trace.
func IsHealthCheck(route string) bool { return route == pathHealthz || route == pathReadyz }

// Check is something that must answer for the shop to be ready. Ping is called by one
// goroutine at a time, at most once in a second, and returns when ctx ends.
type Check struct {
	Name string
	Ping func(ctx context.Context) error
}

type statusJSON struct {
	Status string `json:"status"`
}

// healthz answers that the process lives.
func healthz(*gin.Context) (int, any, error) { return http.StatusOK, statusJSON{"ok"}, nil }

// readyz answers whether buyers may be sent here. Its refusals write no line of the log.
func (a *api) readyz(c *gin.Context) (int, any, error) {
	refuse := problem{Type: "/problems/not-ready", Title: "Not ready", Status: http.StatusServiceUnavailable, RetrySafe: true}
	if a.Draining != nil && a.Draining() {
		refuse.Detail = "This instance is shutting down."
	} else if failing := a.ready.failing(c.Request.Context()); len(failing) > 0 {
		refuse.Detail, refuse.Failing = "No answer from: "+strings.Join(failing, ", ")+".", failing
	} else {
		return http.StatusOK, statusJSON{"ready"}, nil
	}
	a.reject(c, refuse, time.Second)
	return 0, nil, nil
}

const (
	readyTimeout = 2 * time.Second // that all checks have for an answer
	readyEvery   = time.Second     // from the beginning of a round to that of the next
)

// readiness runs the checks for all who ask, in one round at a time and one round in a second,
// whose result they share: however many ask, the servers are asked once.
type readiness struct {
	checks []Check

	mu     sync.Mutex
	began  time.Time // the last round
	failed []string  // in that
}

// failing returns the names of the checks that fail. A round goes on when the client that
// asked first goes away.
func (r *readiness) failing(ctx context.Context) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.began) >= readyEvery {
		r.began = time.Now()
		r.failed = r.run(context.WithoutCancel(ctx))
	}
	return r.failed
}

// run makes all checks at once.
func (r *readiness) run(ctx context.Context) (failed []string) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	errs := make([]error, len(r.checks))
	var wait sync.WaitGroup
	for i, check := range r.checks {
		wait.Go(func() { errs[i] = check.Ping(ctx) })
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			failed = append(failed, r.checks[i].Name)
		}
	}
	return failed
}

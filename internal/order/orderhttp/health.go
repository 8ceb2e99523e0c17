package orderhttp

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

// IsHealthCheck reports whether a request with this route asks how the shop does,
// as load balancers do every second: it counts for no limit and makes no trace.
func IsHealthCheck(route string) bool { return route == pathHealthz || route == pathReadyz }

// readyTimeout is how long database and Redis have for an answer.
const readyTimeout = 2 * time.Second

// healthz answers that the process lives.
func (a *api) healthz(c *gin.Context) {
	a.answer(c, http.StatusOK, statusJSON{Status: "ok"})
}

// readyz answers whether buyers may be sent here.
func (a *api) readyz(c *gin.Context) {
	if a.Draining != nil && a.Draining() {
		a.reject(c, notReady("This instance is shutting down.", nil), 1)
		return
	}
	if failing := a.failing(c.Request.Context()); len(failing) > 0 {
		a.reject(c, notReady("No answer from: "+strings.Join(failing, ", ")+".", failing), 1)
		return
	}
	a.answer(c, http.StatusOK, statusJSON{Status: "ready"})
}

type statusJSON struct {
	Status string `json:"status"`
}

func notReady(detail string, failing []string) problem {
	return problem{
		Type:      "/problems/not-ready",
		Title:     "Not ready",
		Status:    http.StatusServiceUnavailable,
		Detail:    detail,
		RetrySafe: true,
		Failing:   failing,
	}
}

// failing runs all checks at once and returns the names of those that fail.
func (a *api) failing(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	errs := make([]error, len(a.Checks))
	var wait sync.WaitGroup
	for i, check := range a.Checks {
		wait.Go(func() { errs[i] = check.Ping(ctx) })
	}
	wait.Wait()
	var names []string
	for i, err := range errs {
		if err != nil {
			names = append(names, a.Checks[i].Name)
			a.Log.WarnContext(ctx, "not ready", "server", a.Checks[i].Name, "error", err)
		}
	}
	return names
}

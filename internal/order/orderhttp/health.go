package orderhttp

import (
	"net/http"
	"strings"

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
	failing, err := a.readiness.failing(c.Request.Context())
	switch {
	case err != nil: // says nothing about the servers, so that no line of the log is due
		a.reject(c, notReady("Its servers are still being asked.", nil), 1)
	case len(failing) > 0:
		a.reject(c, notReady("No answer from: "+strings.Join(failing, ", ")+".", failing), 1)
	default:
		a.answer(c, http.StatusOK, statusJSON{Status: "ready"})
	}
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

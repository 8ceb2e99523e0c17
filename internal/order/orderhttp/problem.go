package orderhttp

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"
)

// problem is an RFC 9457 problem.
type problem struct {
	Type   string `json:"type"` // relative URI, stable
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`

	// RetrySafe: the same request may be sent again as it is.
	RetrySafe bool `json:"retry_safe"`

	// Failing names what keeps the shop from being ready.
	Failing []string `json:"failing,omitempty"`
}

// fail ends the request with the problem that the error table has for err.
func (a *api) fail(c *gin.Context, err error) {
	r := a.errors.find(err)
	p := problem{
		Type:      "/problems/" + r.slug,
		Title:     r.title,
		Status:    r.status,
		Detail:    r.detail,
		RetrySafe: r.retrySafe,
	}
	if p.Detail == "" {
		p.Detail = err.Error()
	}
	a.note(c, r, err)
	a.reject(c, p, r.retryAfter)
}

// reject ends the request with p.
func (a *api) reject(c *gin.Context, p problem, retryAfter int) {
	body, err := json.Marshal(p)
	if err != nil {
		a.Log.Error("encode problem", "error", err)
	}
	if retryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(retryAfter))
	}
	c.Abort()
	c.Data(p.Status, problemType, append(body, '\n'))
}

// note logs a refusal: causes that are not told, as loudly as they deserve.
func (a *api) note(c *gin.Context, r row, err error) {
	level := slog.LevelDebug
	switch {
	case r.status == http.StatusInternalServerError:
		level = slog.LevelError
	case r.status > http.StatusInternalServerError:
		level = slog.LevelWarn
	}
	a.Log.Log(c.Request.Context(), level, "request refused",
		"method", c.Request.Method, "path", c.Request.URL.Path,
		"status", r.status, "problem", r.slug, "error", err)
}

package orderhttp

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/logs"
	"example.com/shop/internal/order"
)

// problem is an RFC 9457 problem.
type problem struct {
	Type   string `json:"type"` // relative URI, stable
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`

	// RetrySafe: the same request may be sent again as it is.
	RetrySafe bool `json:"retry_safe"`

	// OrderStatus is where the order is in its life that cannot go where it was
	// asked to.
	OrderStatus order.Status `json:"order_status,omitempty"`

	// RequestID is the answer's X-Request-Id, by which the shop finds its log.
	RequestID string `json:"request_id"`

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
	if state, ok := errors.AsType[*order.StateError](err); ok {
		p.OrderStatus = state.Status
	}
	if many, ok := errors.AsType[*tooManyError](err); ok {
		r.retryAfter = seconds(many.wait)
	}
	if open, ok := errors.AsType[*order.OpenError](err); ok {
		// There may be room earlier: an order can be paid or cancelled.
		r.retryAfter = seconds(min(max(open.Wait, time.Second), time.Hour))
	}
	seen := exchangeOf(c)
	seen.problem, seen.err = r.slug, err
	a.reject(c, p, r.retryAfter)
}

// reject ends the request with p.
func (a *api) reject(c *gin.Context, p problem, retryAfter int) {
	p.RequestID = logs.Request(c.Request.Context())
	body, err := json.Marshal(p)
	if err != nil {
		a.Log.ErrorContext(c.Request.Context(), "encode problem", "error", err)
	}
	if retryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(retryAfter))
	}
	c.Abort()
	c.Data(p.Status, problemType, append(body, '\n'))
}

package httpapi_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/observe"
	"example.com/shop/internal/order"
)

// statusOnly takes an answer and keeps nothing but its status.
type statusOnly struct {
	header http.Header
	status int
}

func (w *statusOnly) Header() http.Header         { return w.header }
func (w *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
func (w *statusOnly) WriteHeader(status int)      { w.status = status }

// BenchmarkSoldOut is what a refusal from memory costs between net/http and the service, beside a
// gin handler that does nothing.
func BenchmarkSoldOut(b *testing.B) {
	shop := func(change func(*httpapi.Config)) http.Handler {
		return newShop(b, func(c *httpapi.Config) {
			c.Orders, c.MaxInFlight = failing(order.SoldOut("sale-123456-7-000")), 4096
			c.Log = slog.New(observe.NewHandler(slog.NewTextHandler(io.Discard, nil)))
			c.SoldOut = func(order.Request) bool { return true }
			change(c)
		}).handler
	}
	gin.SetMode(gin.ReleaseMode)
	nothing := gin.New()
	nothing.POST("/v1/orders", func(c *gin.Context) {
		_, _ = io.Copy(io.Discard, c.Request.Body)
		c.Data(http.StatusConflict, "application/json; charset=utf-8", make([]byte, 300))
	})
	token := strings.TrimPrefix(shows(b, shopSecret, "ann"), "Authorization: ")
	for name, handler := range map[string]http.Handler{"nothing": nothing, "with tokens": shop(withTokens(b)), "in teaching mode": shop(teach)} {
		b.Run(name, func(b *testing.B) {
			headers := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"0197a1b2-key"}, "Authorization": {token}}
			b.ReportAllocs()
			for b.Loop() {
				body := strings.NewReader(`{"lines":[{"sku":"sale-123456-7-000","quantity":1}]}`)
				r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/orders", body)
				if err != nil {
					b.Fatal(err)
				}
				r.Header = headers
				w := &statusOnly{header: http.Header{}}
				handler.ServeHTTP(w, r)
				if w.status != http.StatusConflict {
					b.Fatalf("got status %d, want 409", w.status)
				}
			}
		})
	}
}

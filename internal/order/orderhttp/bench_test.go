package orderhttp_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/logs"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderhttp"
	"example.com/shop/internal/stock"
)

// bureau is the methods that a clerk does not need.
type bureau = orderhttp.Orders

// clerk decides at once, so that the rest of a request is what is measured.
type clerk struct {
	bureau
	answer func(order.Request) (order.Order, error)
}

func (c clerk) Place(_ context.Context, r order.Request) (order.Order, bool, error) {
	o, err := c.answer(r)
	return o, false, err
}

func soldOut(r order.Request) (order.Order, error) {
	return order.Order{}, fmt.Errorf("sku %q: %w", r.Lines[0].SKU, stock.ErrSoldOut)
}

func sold(r order.Request) (order.Order, error) {
	price := stock.Money{Minor: 1250, Currency: "EUR"}
	now := time.Now().UTC()
	return order.Order{
		ID: uuid.NewString(), Buyer: r.Buyer, Key: r.Key, Status: order.Pending, Total: price,
		Lines:     []order.Line{{SKU: r.Lines[0].SKU, Units: 1, Price: price}},
		CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}, nil
}

// deaf takes an answer and keeps nothing but its status.
type deaf struct {
	header http.Header
	status int
}

func (d *deaf) Header() http.Header         { return d.header }
func (d *deaf) Write(b []byte) (int, error) { return len(b), nil }
func (d *deaf) WriteHeader(status int)      { d.status = status }

// BenchmarkPlaceOrder is what an order costs between net/http and the service, by
// its outcome, beside a gin handler that does nothing.
func BenchmarkPlaceOrder(b *testing.B) {
	tokens, err := auth.New(secret(b, "a secret of nothing but this test, 0123456789"))
	if err != nil {
		b.Fatal(err)
	}
	token, _, err := tokens.Mint("ann", time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	shop := func(answer func(order.Request) (order.Order, error), change func(*orderhttp.Config)) http.Handler {
		return setup(b, func(c *orderhttp.Config) {
			c.Orders = clerk{answer: answer}
			c.Buyers = tokens
			c.MaxInFlight = 4096
			c.Log = slog.New(logs.NewHandler(slog.NewTextHandler(io.Discard, nil)))
			if change != nil {
				change(c)
			}
		}).handler
	}
	for _, c := range []struct {
		name    string
		handler http.Handler
		status  int
	}{
		{"nothing", doNothing(), http.StatusCreated},
		{"sold out", shop(soldOut, nil), http.StatusConflict},
		{"sold out in teaching mode", shop(soldOut, func(c *orderhttp.Config) { lab(c); c.Buyers = nil }), http.StatusConflict},
		{"placed", shop(sold, nil), http.StatusCreated},
	} {
		b.Run(c.name, func(b *testing.B) {
			headers := http.Header{
				"Content-Type":    {"application/json"},
				"Idempotency-Key": {"0197a1b2-key"},
				"Authorization":   {"Bearer " + token},
			}
			body := `{"lines":[{"sku":"sale-123456-7-000","quantity":1}]}`
			b.ReportAllocs()
			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/orders", strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				r.Header = headers
				w := &deaf{header: http.Header{}}
				c.handler.ServeHTTP(w, r)
				if w.status != c.status {
					b.Fatalf("got status %d, want %d", w.status, c.status)
				}
			}
		})
	}
}

// doNothing is the handler of loadtest/sale that is the ceiling.
func doNothing() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.POST("/v1/orders", func(c *gin.Context) {
		if _, err := io.Copy(io.Discard, c.Request.Body); err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		c.Data(http.StatusCreated, "application/json; charset=utf-8", make([]byte, 300))
	})
	return engine
}

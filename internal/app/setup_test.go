package app_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"example.com/shop/internal/app"
	"example.com/shop/internal/httpapi/contract"
	"example.com/shop/internal/lab"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testserver"
)

func TestMain(m *testing.M) {
	// Its dial of a Redis that is gone ends by itself within a second.
	goleak.VerifyTestMain(testserver.Wrap(m), goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// embedded are settings of a shop that needs no server, with one SKU, mug, the operator's API, and buyers who have no limits
// and pay by their own word.
func embedded(t *testing.T, units int64) app.Settings {
	t.Helper()
	addrs, stop, err := lab.StartEmbedded(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	s := app.Default()
	s.Listen, s.Data, s.Redis = "127.0.0.1:0", t.TempDir(), addrs[0]
	s.TokenSecret = secret(t, tokenSecret)
	s.OperatorListen, s.OperatorToken = "127.0.0.1:0", secret(t, operatorToken)
	s.RateLimit, s.MaxOpenOrders, s.BuyersPay = new(0), new(0), true
	supply(t, s, units)
	return s
}

func supply(t *testing.T, s app.Settings, units int64) {
	t.Helper()
	database, err := app.OpenDatabase(t.Context(), s.DatabaseSettings)
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	if _, err := database.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	sku, err := stock.NewSKU("mug", stock.Money{Minor: 1250, Currency: "EUR"}, units, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := database.Create(t.Context(), sku); err != nil {
		t.Fatal(err)
	}
}

// start starts a shop and shuts it down at the end, unless the test did.
func start(t *testing.T, s app.Settings) *app.Shop {
	t.Helper()
	shop, err := app.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		_ = shop.Shutdown(context.Background())
	})
	return shop
}

type answer struct {
	status int
	body   string
	err    error
}

// want fails the test unless the request was answered with the status.
func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.err != nil || a.status != status {
		t.Fatalf("got %d %s, %v; want status %d", a.status, a.body, a.err, status)
	}
	return a
}

// call sends a request to the buyers' listener, below /v1/orders with ann's token; lines are headers. An answer that is not
// as openapi.yaml has it fails the test. It may be used by many goroutines.
func call(t *testing.T, method, url, body string, lines ...string) answer {
	t.Helper()
	if strings.Contains(url, "/v1/orders") {
		lines = append([]string{as(t, "ann")}, lines...)
	}
	return callAt(t, contract.Buyers, method, url, body, lines...)
}

// operate sends a request to the operator's listener, with the token.
func operate(t *testing.T, shop *app.Shop, method, path, body string) answer {
	t.Helper()
	return callAt(t, contract.Operator, method, "http://"+shop.OperatorAddr()+path, body, asOperator, "Content-Type: application/json")
}

// callAt is call for a listener of one's choice.
func callAt(t *testing.T, listener contract.Listener, method, url, body string, lines ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	client := &http.Client{Transport: contract.Transport(t, listener, http.DefaultTransport)}
	w, err := client.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	return answer{w.StatusCode, string(text), err}
}

func buy(t *testing.T, shop *app.Shop, key string, lines ...string) answer {
	t.Helper()
	lines = append(lines, "Content-Type: application/json", "Idempotency-Key: "+key)
	return call(t, http.MethodPost, shop.URL()+"/v1/orders", `{"lines":[{"sku":"mug","quantity":1}]}`, lines...)
}

// wantAudit fails unless the accounts agree and this many orders are in them.
func wantAudit(t *testing.T, shop *app.Shop, orders int64) {
	t.Helper()
	w := operate(t, shop, http.MethodGet, "/v1/audit", "").want(t, http.StatusOK)
	var got struct {
		OK   bool
		SKUs []struct{ Orders int64 }
	}
	if err := json.Unmarshal([]byte(w.body), &got); err != nil {
		t.Fatal(err)
	}
	if !got.OK || len(got.SKUs) != 1 || got.SKUs[0].Orders != orders {
		t.Errorf("got audit %s, want ok and %d orders", w.body, orders)
	}
}

// untilReady returns once the shop is ready: a machine that stands still may have it say once that a server does not
// answer.
func untilReady(t *testing.T, shop *app.Shop) {
	t.Helper()
	testserver.Until(t, "the shop is ready", 30*time.Second, func() bool {
		return call(t, http.MethodGet, shop.URL()+"/readyz", "").status == http.StatusOK
	})
}

// untilWaits returns once an order waits for the lease of its SKU, which another instance has.
func untilWaits(t *testing.T, shop *app.Shop) {
	t.Helper()
	testserver.Until(t, "an order waits for its lease", patience, func() bool {
		return strings.Contains(scrape(t, shop), `shop_lock_contended_total{kind="sku",lock="redis"} 1`)
	})
}

// takeLease is another instance, that has the lease of a key and keeps it.
func takeLease(t *testing.T, s app.Settings, key string) *lock.Lease {
	t.Helper()
	options, err := redis.ParseURL("redis://" + strings.TrimPrefix(s.Redis, "redis://"))
	if err != nil {
		t.Fatal(err)
	}
	options.ContextTimeoutEnabled, options.DisableIdentity = true, true
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	locker := lock.New(lock.NewRedis(client), lock.Options{TTL: s.LockTTL})
	t.Cleanup(func() { _ = locker.Close() })
	lease, err := locker.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

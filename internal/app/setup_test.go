package app_test

import (
	"context"
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

// embedded returns settings of a shop that needs no server, with one SKU, mug, the operator's API, and
// buyers who have no limits and pay by their own word.
func embedded(t *testing.T, units int64) app.Settings {
	t.Helper()
	addrs, stop, err := lab.StartEmbedded(1)
	testserver.Must(t, err)
	t.Cleanup(func() { testserver.Must(t, stop()) })
	s := app.Default()
	s.Listen, s.Data, s.Redis = "127.0.0.1:0", t.TempDir(), addrs[0]
	s.TokenSecret = secret(t, tokenSecret)
	s.OperatorListen, s.OperatorToken = "127.0.0.1:0", secret(t, operatorToken)
	s.RateLimit, s.MaxOpenOrders, s.BuyersPay = 0, 0, true
	supply(t, s, units)
	return s
}

func supply(t *testing.T, s app.Settings, units int64) {
	t.Helper()
	database, err := app.OpenDatabase(t.Context(), s.DatabaseSettings)
	testserver.Must(t, err)
	defer database.Close()
	_, err = database.Migrate(t.Context())
	testserver.Must(t, err)
	sku, err := stock.NewSKU("mug", stock.Money{Minor: 1250, Currency: "EUR"}, units, time.Now())
	testserver.Must(t, err)
	testserver.Must(t, database.Create(t.Context(), sku))
}

// start starts a shop and shuts it down at the end, unless the test did.
func start(t *testing.T, s app.Settings) *app.Shop {
	t.Helper()
	shop, err := app.Start(t.Context(), s, app.Hooks{})
	testserver.Must(t, err)
	t.Cleanup(func() { _ = shop.Shutdown(context.Background()) })
	return shop
}

type answer = contract.Answer

// call sends a request to the buyers' listener, below /v1/orders with ann's token; lines are headers.
func call(t *testing.T, method, url, body string, lines ...string) answer {
	t.Helper()
	if strings.Contains(url, "/v1/orders") {
		lines = append([]string{as(t, "ann")}, lines...)
	}
	return contract.Buyers().Send(method, url, body, lines...)
}

// operate sends a request to the operator's listener, with the token.
func operate(shop *app.Shop, method, path, body string, lines ...string) answer {
	lines = append([]string{asOperator, asJSON}, lines...)
	return contract.Operator().Send(method, "http://"+shop.OperatorAddr()+path, body, lines...)
}

const asJSON = "Content-Type: application/json"

func buy(t *testing.T, shop *app.Shop, key string, lines ...string) answer {
	t.Helper()
	lines = append(lines, asJSON, "Idempotency-Key: "+key)
	return call(t, http.MethodPost, shop.URL()+"/v1/orders", `{"lines":[{"sku":"mug","quantity":1}]}`, lines...)
}

// wantAudit fails unless the accounts agree and this many orders are in them.
func wantAudit(t *testing.T, shop *app.Shop, orders int64) {
	t.Helper()
	var got struct {
		OK   bool
		SKUs []struct{ Orders int64 }
	}
	w := operate(shop, http.MethodGet, "/v1/audit", "").Want(t, http.StatusOK)
	w.Decode(t, &got)
	if !got.OK || len(got.SKUs) != 1 || got.SKUs[0].Orders != orders {
		t.Errorf("got audit %s, want ok and %d orders", w.Body, orders)
	}
}

// untilReady returns once the shop is ready: a machine that stands still may have it say once that a server does not
// answer.
func untilReady(t *testing.T, shop *app.Shop) {
	t.Helper()
	testserver.Until(t, "the shop is ready", 30*time.Second, func() bool {
		return call(t, http.MethodGet, shop.URL()+"/readyz", "").Status == http.StatusOK
	})
}

// takeLease is another instance, which takes the lease of a key. waited returns once an order of the shop waits for it.
func takeLease(t *testing.T, s app.Settings, key string) (lease *lock.Lease, waited func()) {
	t.Helper()
	options, err := redis.ParseURL("redis://" + strings.TrimPrefix(s.Redis, "redis://"))
	testserver.Must(t, err)
	options.ContextTimeoutEnabled, options.DisableIdentity = true, true
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	locker := lock.New(lock.NewRedis(client), lock.Options{TTL: s.LockTTL})
	t.Cleanup(func() { _ = locker.Close() })
	lease, err = locker.TryAcquire(t.Context(), key)
	testserver.Must(t, err)
	return lease, func() {
		testserver.Until(t, "an order waits for its lease", patience, func() bool {
			return strings.Contains(client.Get(t.Context(), "lock:{"+key+"}").Val(), "*") // see redis_acquire.lua
		})
	}
}

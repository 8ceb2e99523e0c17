package app_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/glebarez/sqlite"
	"go.uber.org/goleak"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/order/orderhttp/contract"
	"example.com/shop/internal/stock"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testserver.Wrap(m))
}

// embedded starts the default that needs no server, with one SKU, mug.
func embedded(t *testing.T, units int64) app.Settings {
	t.Helper()
	e, err := app.StartEmbedded(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	s := app.Default()
	s.Listen, s.SQLite, s.Redis = "127.0.0.1:0", e.SQLite(), e.Redis()
	s.Lab = true
	supply(t, s, units)
	return s
}

func supply(t *testing.T, s app.Settings, units int64) {
	t.Helper()
	database, err := app.OpenDatabase(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	if err := database.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	sku, err := stock.NewSKU("mug", stock.Money{Minor: 1250, Currency: "EUR"}, units, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := database.Stock().Create(t.Context(), sku); err != nil {
		t.Fatal(err)
	}
}

func migrate(t *testing.T, s app.Settings) {
	t.Helper()
	database, err := app.OpenDatabase(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	if _, err := database.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// loseOrders takes the table of orders away from a shop on a file, so that its jobs fail.
func loseOrders(t *testing.T, s app.Settings) {
	t.Helper()
	db, err := sql.Open(sqlite.DriverName, s.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	until(t, "the orders are out of the way", patience, func() bool { // the file may be busy
		_, err := db.ExecContext(t.Context(), "ALTER TABLE orders RENAME TO gone")
		return err == nil
	})
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
}

// call sends a request to the buyers' listener; lines are headers. An answer that
// is not as openapi.yaml has it fails the test. It may be used by many goroutines.
func call(t *testing.T, method, url, body string, lines ...string) (answer, error) {
	t.Helper()
	return callAt(t, contract.Buyers, method, url, body, lines...)
}

// callAt is call for a listener of one's choice.
func callAt(t *testing.T, listener contract.Listener, method, url, body string, lines ...string) (answer, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	client := &http.Client{Transport: contract.Transport(t, listener, http.DefaultTransport)}
	w, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	return answer{w.StatusCode, string(text)}, err
}

func buy(t *testing.T, shop *app.Shop, key string, lines ...string) (answer, error) {
	t.Helper()
	lines = append(lines, "Content-Type: application/json", "Idempotency-Key: "+key)
	return call(t, http.MethodPost, shop.URL()+"/v1/orders", `{"lines":[{"sku":"mug","quantity":1}]}`, lines...)
}

// wantStatus fails unless the call was answered with the status.
func wantStatus(t *testing.T, got answer, err error, want int) {
	t.Helper()
	if err != nil || got.status != want {
		t.Fatalf("got %d %s, %v; want status %d", got.status, got.body, err, want)
	}
}

// wantAudit fails unless the accounts agree and so many orders are in them.
func wantAudit(t *testing.T, shop *app.Shop, orders int64) {
	t.Helper()
	w, err := call(t, http.MethodGet, shop.URL()+"/v1/audit", "")
	wantStatus(t, w, err, http.StatusOK)
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

// until polls a condition; what it waits for cannot signal.
func until(t *testing.T, what string, limit time.Duration, condition func() bool) {
	t.Helper()
	end := time.Now().Add(limit)
	for !condition() {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// untilReady returns once the shop is ready: a machine that stands still may have it
// say once that a server does not answer.
func untilReady(t *testing.T, shop *app.Shop) {
	t.Helper()
	until(t, "the shop is ready", 30*time.Second, func() bool {
		w, err := call(t, http.MethodGet, shop.URL()+"/readyz", "")
		return err == nil && w.status == http.StatusOK
	})
}

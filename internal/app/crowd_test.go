package app_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/testserver"
)

// crowdPatience is for what a crowd takes on a machine that has better to do.
const crowdPatience = 4 * time.Minute

// A crowd stands in one lane while another instance has the lease. When that one gives it back, everyone is sold what they
// wait for. What each buyer takes is measured by loadtest/bench.
func TestShop_crowd(t *testing.T) {
	const crowd = 300
	s := embedded(t, crowd)
	s.LockWait = crowdPatience
	shop := start(t, s)
	lease := takeLease(t, s, "sku:mug")

	buyers := make([]net.Conn, crowd)
	for i := range buyers {
		buyers[i] = ask(t, shop, i)
	}
	line := fmt.Sprintf(`shop_queue_length{queue="lanes"} %d`, crowd)
	awaitMetric(t, shop, line)

	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
	for i, conn := range buyers {
		w, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("buyer %d: %v", i, err)
		}
		_ = w.Body.Close()
		if w.StatusCode != http.StatusCreated {
			t.Errorf("buyer %d: got status %d, want %d", i, w.StatusCode, http.StatusCreated)
		}
	}
	wantAudit(t, shop, crowd)
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

// ask sends the order of one buyer, and leaves the answer in the connection: a buyer of this test is no goroutine.
func ask(t *testing.T, shop *app.Shop, buyer int) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", shop.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(crowdPatience)); err != nil {
		t.Fatal(err)
	}
	const body = `{"lines":[{"sku":"mug","quantity":1}]}`
	_, err = fmt.Fprintf(conn, "POST /v1/orders HTTP/1.1\r\nHost: shop\r\n%s\r\nIdempotency-Key: k\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", as(t, fmt.Sprint("b", buyer)), len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// awaitMetric waits until a line is among the metrics.
func awaitMetric(t *testing.T, shop *app.Shop, line string) {
	t.Helper()
	testserver.Until(t, line, crowdPatience, func() bool { return strings.Contains(scrape(t, shop), "\n"+line+"\n") })
}

package main

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lock/testserver"
)

// killTTL is short, so that the test is; one case has the default.
const killTTL = 2 * time.Second

// A shop that is killed in mid-order, while it holds the lease, keeps the others
// from selling for no longer than TTL + 1 s, and leaves clean accounts. Not
// parallel: it measures time.
func TestServe_killedHolder(t *testing.T) {
	t.Run("one file", func(t *testing.T) {
		killHolder(t, lockServer(t), killTTL, "--data", t.TempDir())
	})
	t.Run("one file, defaults", func(t *testing.T) {
		if testing.Short() {
			t.Skip("waits for a lease of 10 s; not with -short")
		}
		killHolder(t, lockServer(t), app.Default().LockTTL, "--data", t.TempDir())
	})
	for name, dsn := range map[string]func(testing.TB) string{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB} {
		t.Run(name, func(t *testing.T) {
			database := []string{"--mysql", dsn(t)}
			shop(t, append([]string{"migrate"}, database...)...).want(t, exitDone, "up to date")
			shop(t, append([]string{"seed", "--sku", "demo-mug", "--units", "5"}, database...)...).want(t, exitDone, "demo-mug")
			killHolder(t, testserver.Redis(t), killTTL, database...)
		})
	}
}

func killHolder(t *testing.T, locks string, ttl time.Duration, database ...string) {
	t.Helper()
	args := append([]string{"--redis", locks, "--lab"}, database...)
	if ttl != app.Default().LockTTL {
		args = append(args, "--lock-ttl", ttl.String())
	}
	victim, other := startShop(t, args...), startShop(t, args...)
	lost := make(chan answer, 1)
	go func() { lost <- buy(victim.url, "key-1", "Shop-Think: 1s") }()
	awaitHolder(t, locks, "demo-mug")
	victim.signal(t, syscall.SIGKILL)
	killed := time.Now()
	if a := <-lost; a.err == nil {
		t.Fatalf("got %d %s from the killed shop, want no answer", a.status, a.body)
	}
	buy(other.url, "key-2").want(t, http.StatusCreated)
	took := time.Since(killed)
	t.Logf("sold again %v after the kill, TTL %v", took.Round(time.Millisecond), ttl)
	if took > ttl+time.Second {
		t.Errorf("got the next sale after %v, want it within %v", took, ttl+time.Second)
	}
	// The buyer whose answer was lost asks again.
	buy(other.url, "key-1").want(t, http.StatusCreated)
	shop(t, append([]string{"audit"}, database...)...).want(t, exitDone, "2 orders", "0 differences")
}

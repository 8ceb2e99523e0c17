package main

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// killTTL is short, so that the test is; one case has the default.
const killTTL = 2 * time.Second

// killRounds is how many kills may be too slow: a busy machine holds up one, or the test before it, but a shop that is
// late is late in all of them.
const killRounds = 3

// A shop that is killed in mid-order, while it holds the lease, keeps the others from selling for no longer than TTL +
// 1 s, and leaves clean accounts. Not parallel: it measures time.
func TestServe_killedHolder(t *testing.T) { //nolint:tparallel // one after the other: others would delay the next sale
	t.Parallel()
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
			killHolder(t, testserver.Redis(t), killTTL, stocked(t, dsn(t), 10)...)
		})
	}
}

func killHolder(t *testing.T, locks string, ttl time.Duration, database ...string) {
	t.Helper()
	args := append([]string{"--redis", locks, "--lab"}, database...)
	if ttl != app.Default().LockTTL {
		args = append(args, "--lock-ttl", ttl.String())
	}
	other := startShop(t, args...)
	round := 1
	for !killInOrder(t, round, locks, ttl, startShop(t, args...), other) {
		if round == killRounds {
			t.Errorf("got no round of %d as wanted: the shop is killed in mid-order, the next sale is within %v", killRounds, ttl+time.Second)
			break
		}
		round++
	}
	shop(t, append([]string{"audit"}, database...)...).want(t, exitDone, fmt.Sprint(2*round, " order lines"), "0 differences")
}

// killInOrder tells whether the victim had no time to answer, and the other sold again in time.
func killInOrder(t *testing.T, round int, locks string, ttl time.Duration, victim, other *running) bool {
	t.Helper()
	lost, key := make(chan answer, 1), fmt.Sprint("lost-", round)
	go func() { lost <- buy(victim.url, key, "Shop-Think: 1s") }()
	awaitHolder(t, locks, "demo-mug", lost)
	victim.signal(t, syscall.SIGKILL)
	killed := time.Now()
	a := <-lost
	if a.err == nil {
		t.Logf("got %d %s from the killed shop, want no answer", a.status, a.body)
	}
	buy(other.url, fmt.Sprint("next-", round)).want(t, http.StatusCreated)
	took := time.Since(killed)
	t.Logf("sold again %v after the kill, TTL %v", took.Round(time.Millisecond), ttl)
	// The buyer whose answer was lost asks again.
	buy(other.url, key).want(t, http.StatusCreated)
	return a.err != nil && took <= ttl+time.Second
}

package main

import (
	"encoding/json"
	"net/http"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/testserver"
)

// "When it is killed, within the lock's TTL and a second": the instance that has the jobs is killed, and another goes
// on. Not parallel: it measures time.
func TestServe_killedWithJobs(t *testing.T) {
	jobs := []string{"expiry", "reconcile"}
	data, locks := t.TempDir(), lockServer(t)
	args := []string{"--data", data, "--redis", locks, "--lock-ttl", killTTL.String(), "--pay-within", "1s"}
	args = append(args, withSecret(t)...)
	ann := as(t, "ann")
	runs := func(s *running, job string) func() bool {
		return func() bool { return s.stderr.Has(`msg="job runs here" job=` + job) }
	}
	victim := startShop(t, args...)
	for _, job := range jobs {
		testserver.Until(t, "the first instance has the job "+job, patience, runs(victim, job))
	}
	other := startShop(t, args...)
	bought := buy(other.url, "key-1", ann)
	bought.want(t, http.StatusCreated)

	kill := func() (last time.Duration) {
		victim.signal(t, syscall.SIGKILL)
		killed := time.Now()
		for _, job := range jobs {
			testserver.Until(t, "the other instance has the job "+job, patience, runs(other, job))
			last = time.Since(killed)
			t.Logf("the job %s went on %v after the kill, TTL %v", job, last.Round(time.Millisecond), killTTL)
		}
		return last
	}
	for round := 1; kill() > killTTL+time.Second; round++ {
		if round == killRounds {
			t.Errorf("got jobs that went on too late after %d kills, want them within %v of one", round, killTTL+time.Second)
			break
		}
		victim, other = other, startShop(t, args...)
	}
	testserver.Until(t, "the order has expired", patience, func() bool {
		read := send(http.MethodGet, other.url+bought.header.Get("Location"), "", ann)
		read.want(t, http.StatusOK)
		var order struct{ Status string }
		if err := json.Unmarshal([]byte(read.body), &order); err != nil {
			t.Fatal(err)
		}
		return order.Status == "expired"
	})
	send(http.MethodPost, other.url+bought.header.Get("Location")+"/pay", "", ann).want(t, http.StatusConflict)
	shop(t, "audit", "--data", data).want(t, exitDone, "1 order line,", "0 differences")
}

package main

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// killTTL is short, so that the test is.
const killTTL = 2 * time.Second

// killRounds is how many ends of an instance may be followed too late: a busy machine delays one, but a shop that is late
// is late after each.
const killRounds = 3

// "If that instance shuts down, another takes over within two seconds; if it is killed, within the lock's TTL and a
// second": the instance that has the jobs ends, and another takes over. Not parallel: it measures time.
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
	bought := buy(other.url, "key-1", ann).Want(t, http.StatusCreated)

	end := func(by syscall.Signal) (last time.Duration) {
		victim.signal(t, by)
		victim.wait(t)
		ended := time.Now()
		for _, job := range jobs {
			testserver.Until(t, "the other instance has the job "+job, patience, runs(other, job))
			last = time.Since(ended)
			t.Logf("the job %s went on %v after %v, TTL %v", job, last.Round(time.Millisecond), by, killTTL)
		}
		victim, other = other, startShop(t, args...)
		return last
	}
	for by, limit := range map[syscall.Signal]time.Duration{syscall.SIGTERM: 2 * time.Second, syscall.SIGKILL: killTTL + time.Second} {
		for round := 1; end(by) > limit; round++ {
			if round == killRounds {
				t.Errorf("%v: got jobs that went on too late %d times, want them within %v of one", by, round, limit)
				break
			}
		}
	}
	testserver.Until(t, "the order has expired", patience, func() bool {
		var order struct{ Status string }
		send(http.MethodGet, other.url+bought.Header.Get("Location"), "", ann).Want(t, http.StatusOK).Decode(t, &order)
		return order.Status == "expired"
	})
	send(http.MethodPost, other.url+bought.Header.Get("Location")+"/cancel", "", ann).Want(t, http.StatusConflict)
	shop(t, "audit", "--data", data).want(t, app.ExitDone, "1 order line,", "0 differences")
}

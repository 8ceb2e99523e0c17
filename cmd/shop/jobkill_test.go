package main

import (
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/testserver"
)

// "If that instance shuts down, another takes over within two seconds; if it is killed, within the lock's TTL and a
// second": a busy machine may be late once, but a shop that is late is late each time. Not parallel: it measures time.
func TestServe_killedWithJobs(t *testing.T) {
	const ttl = 2 * time.Second
	takesOver := func(end syscall.Signal) (after time.Duration) {
		args := append(withSecret(t), "--data", t.TempDir(), "--redis", lockServer(t), "--lock-ttl", ttl.String())
		awaitJobs := func(s *running) {
			for _, job := range []string{"expiry", "reconcile"} {
				testserver.Until(t, "the job "+job+" runs", patience, func() bool { return s.stderr.Has(`msg="job runs here" job=` + job) })
			}
		}
		first := startShop(t, args...)
		awaitJobs(first)
		other := startShop(t, args...)
		first.signal(t, end)
		first.wait(t)
		ended := time.Now()
		awaitJobs(other)
		return time.Since(ended)
	}
	for end, limit := range map[syscall.Signal]time.Duration{syscall.SIGTERM: 2 * time.Second, syscall.SIGKILL: ttl + time.Second} {
		after := takesOver(end)
		for round := 1; after > limit && round < 3; round++ {
			after = takesOver(end)
		}
		if after > limit {
			t.Errorf("%v: got the jobs elsewhere after %v, want them within %v", end, after, limit)
		}
	}
}

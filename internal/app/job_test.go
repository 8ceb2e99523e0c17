package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/metrics"
)

// away is a store that does not let anybody have a lease for a while.
type away struct {
	lock.Backend
	until time.Time
}

func (a away) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	if time.Now().Before(a.until) {
		return lock.Grant{}, errors.New("connection refused")
	}
	return a.Backend.Acquire(ctx, c)
}

// A job "that runs every ten minutes must not stand still for as long because
// Redis was away".
func TestJob_loop_storeAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const outage = 3500 * time.Millisecond // by the bubble's clock
		began := time.Now()
		locker := lock.New(away{lock.NewMemory(), began.Add(outage)}, lock.Options{TTL: time.Second})
		runs := make(chan struct{})
		j := job{
			name: "test", every: time.Hour, locker: locker, log: slog.New(slog.DiscardHandler),
			metrics: metrics.New(metrics.Build{}).Job("test"),
			run: func(context.Context) (int, error) {
				close(runs)
				return 0, nil
			},
		}
		var all jobs
		all.start(j)
		<-runs
		if waited := time.Since(began); waited < outage || waited > outage+askAgain {
			t.Errorf("got a run after %v, want it within %v of the outage's end, %v", waited, askAgain, outage)
		}
		all.end()
		if err := locker.Close(); err != nil {
			t.Error(err)
		}
	})
}

package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/metrics"
	"example.com/shop/internal/order"
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
		<-all.end()
		if err := locker.Close(); err != nil {
			t.Error(err)
		}
	})
}

// "Another instance goes on with them at once", also where a run hangs; it is waited
// for as long as the context allows.
func TestJobs_end(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locker := lock.New(lock.NewMemory(), lock.Options{TTL: time.Second})
		ended, hangs := make(chan struct{}), make(chan struct{})
		var all jobs
		all.start(job{
			name: "test", every: time.Hour, locker: locker, log: slog.New(slog.DiscardHandler),
			metrics: metrics.New(metrics.Build{}).Job("test"),
			run: func(ctx context.Context) (int, error) {
				<-ctx.Done()
				close(ended)
				<-hangs
				return 0, ctx.Err()
			},
		})
		synctest.Wait()
		done := all.end()
		<-ended

		var log bytes.Buffer
		shop := &Shop{log: slog.New(slog.NewTextHandler(&log, nil))}
		const most = 20 * time.Second // by the bubble's clock
		ctx, cancel := context.WithTimeout(t.Context(), most)
		defer cancel()
		began := time.Now()
		shop.awaitJobs(ctx, done)
		if waited := time.Since(began); waited != most || !strings.Contains(log.String(), "jobs were cut off") {
			t.Errorf("got a wait of %v for a job that hangs, log %s; want %v, and that it is told", waited, &log, most)
		}
		if err := locker.Close(); err != nil { // as of parts that a job still uses
			t.Error(err)
		}
		close(hangs)
		<-done
		log.Reset()
		shop.awaitJobs(ctx, done)
		if log.Len() > 0 {
			t.Errorf("got log %s of jobs that have ended, want none", &log)
		}
	})
}

// A job that hangs does not keep the shop from refusing connections; then it is
// waited for.
func TestShutdown_jobHangs(t *testing.T) {
	t.Parallel()
	e, err := StartEmbedded(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s := Default()
	s.Listen, s.SQLite, s.Redis, s.Lab = "127.0.0.1:0", e.SQLite(), e.Redis(), true
	s.DrainTimeout = maxWait
	shop, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	began, hangs := make(chan struct{}), make(chan struct{})
	var ended atomic.Bool
	shop.jobs.start(job{
		name: "test", every: time.Hour, locker: shop.parts.lockers[order.MemoryLock], log: shop.log,
		metrics: shop.parts.metrics.Job("test"),
		run: func(ctx context.Context) (int, error) {
			close(began)
			<-hangs
			ended.Store(true)
			return 0, ctx.Err()
		},
	})
	<-began
	closed := make(chan error, 1)
	go func() { closed <- shop.Shutdown(context.Background()) }()
	select {
	case <-shop.Done():
	case <-time.After(30 * time.Second):
		t.Error("got a shop that accepts connections, want none 30 s after Shutdown")
	}
	close(hangs)
	if err := <-closed; err != nil || !ended.Load() {
		t.Errorf("got %v, job ended: %v; want nil, and that it was waited for", err, ended.Load())
	}
}

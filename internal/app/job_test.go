package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
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

// standby is one of the instances that share a store of leases, with its job.
type standby struct {
	jobs
	locker *lock.Locker

	mu   sync.Mutex
	told []time.Time
}

// tried returns when it has tried to do its job.
func (s *standby) tried() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

func (s *standby) note() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, time.Now())
}

// startStandby starts an instance on which try is whether the job is due, if asked,
// or else the job.
func startStandby(store lock.Backend, every, retry time.Duration, asked bool, try func() error) *standby {
	s := &standby{locker: lock.New(store, lock.Options{})}
	j := job{
		name: "test", every: every, retry: retry, locker: s.locker, log: slog.New(slog.DiscardHandler),
		metrics: metrics.New(metrics.Build{}).Job("test"),
		run: func(context.Context) (int, error) {
			s.note()
			return 0, try()
		},
	}
	if asked {
		j.due = func(ctx context.Context) (bool, error) {
			_, err := j.run(ctx)
			return false, err
		}
	}
	s.start(j)
	return s
}

func (s *standby) end(t *testing.T) {
	t.Helper()
	<-s.jobs.end()
	if err := s.locker.Close(); err != nil {
		t.Error(err)
	}
}

// "An instance on which a job fails, as one that has lost its own database, leaves the
// job to another at once, and stands by again", for as long as another leads.
func TestJob_loop_failsHere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		every, retry time.Duration
		asked        bool
	}{
		"often":            {every: 10 * time.Millisecond},
		"seldom":           {every: 10 * time.Minute},
		"tried again":      {every: time.Minute, retry: time.Hour},
		"not known if due": {every: time.Minute, retry: time.Hour, asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, others := lock.NewMemory(), make(chan struct{})
				well := func() error { return nil }
				sick := startStandby(store, c.every, c.retry, c.asked, func() error {
					<-others
					return errors.New("access denied")
				})
				synctest.Wait() // it leads
				one := startStandby(store, c.every, c.retry, c.asked, well)
				two := startStandby(store, c.every, c.retry, c.asked, well)
				synctest.Wait() // they stand by
				failed := time.Now()
				close(others)
				synctest.Wait()
				healthy := slices.Concat(one.tried(), two.tried())
				if len(healthy) != 1 || !healthy[0].Equal(failed) {
					t.Errorf("got runs at %v elsewhere, want one at once, at %v", healthy, failed)
				}
				time.Sleep(2*max(giveWay, c.every, c.retry) + c.every/2) // by the bubble's clock
				synctest.Wait()
				led := len(one.tried()) + len(two.tried()) - 1
				if want := int(time.Since(failed) / c.every); len(sick.tried()) != 1 || led != want {
					t.Errorf("got %d tries where it failed and %d more elsewhere, want 1 and %d", len(sick.tried()), led, want)
				}
				one.end(t)
				two.end(t)
				synctest.Wait()
				if len(sick.tried()) != 2 {
					t.Errorf("got %d tries where it failed when the others had gone, want another at once", len(sick.tried()))
				}
				sick.end(t)
			})
		})
	}
}

// "stands by again when it would have tried again, after a second at least. One that is
// alone goes on trying."
func TestJob_loop_failsAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		every, retry time.Duration
		asked        bool
		want         time.Duration // between tries
	}{
		"often":            {every: 10 * time.Millisecond, want: giveWay},
		"seldom":           {every: 10 * time.Minute, want: 10 * time.Minute},
		"tried again":      {every: time.Minute, retry: time.Hour, want: time.Hour},
		"not known if due": {every: time.Minute, retry: time.Hour, asked: true, want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const tries = 5
				began := time.Now()
				alone := startStandby(lock.NewMemory(), c.every, c.retry, c.asked, func() error { return errors.New("access denied") })
				time.Sleep((tries - 1) * c.want)
				synctest.Wait()
				if len(alone.tried()) != tries {
					t.Errorf("got %d tries in %v, want %d", len(alone.tried()), time.Since(began), tries)
				}
				for i, at := range alone.tried() {
					if got, want := at.Sub(began), time.Duration(i)*c.want; got != want {
						t.Errorf("got try %d after %v, want it after %v", i, got, want)
					}
				}
				alone.end(t)
			})
		})
	}
}

// "A run that was ended from outside has not failed": nothing keeps this instance from
// the lease's next turn.
func TestJob_work_ended(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	j := job{
		name: "test", every: time.Hour, log: slog.New(slog.DiscardHandler),
		metrics: metrics.New(metrics.Build{}).Job("test"),
		run: func(ctx context.Context) (int, error) {
			end()
			return 0, ctx.Err()
		},
	}
	if aside := j.work(ctx); aside != 0 {
		t.Errorf("got %v to leave the job to others, want none", aside)
	}
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

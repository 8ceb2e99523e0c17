package orderhttp

import (
	"context"
	"sync"
	"time"
)

const (
	readyTimeout = 2 * time.Second // that all checks have for an answer
	readyEvery   = time.Second     // from the beginning of a round to that of the next
)

// readiness runs the checks for all who ask: in one round at a time, and one round in
// a second, whose outcome they share. However many ask, the servers are asked once.
type readiness struct {
	checks []Check

	mu   sync.Mutex
	last *round // which may still run; nil: there was none
}

// round is one call of all checks.
type round struct {
	began   time.Time
	done    chan struct{}
	failing []string // names; read after done
}

// failing returns the names of the checks that fail. Who finds no round to share runs
// one, and to its end even if their client goes away: others wait for it. It errs when
// ctx ends before the round does.
func (r *readiness) failing(ctx context.Context) ([]string, error) {
	current, mine := r.join()
	if mine {
		current.run(context.WithoutCancel(ctx), r.checks)
	}
	select {
	case <-current.done:
		return current.failing, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// join returns the round to share, and whether the caller has to run it.
func (r *readiness) join() (current *round, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || r.last.isOld() {
		r.last, mine = &round{began: time.Now(), done: make(chan struct{})}, true
	}
	return r.last, mine
}

func (r *round) isOld() bool {
	select {
	case <-r.done:
		return time.Since(r.began) >= readyEvery
	default:
		return false // it runs
	}
}

// run makes all checks at once.
func (r *round) run(ctx context.Context, checks []Check) {
	defer close(r.done)
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	errs := make([]error, len(checks))
	var wait sync.WaitGroup
	for i, check := range checks {
		wait.Go(func() { errs[i] = check.Ping(ctx) })
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			r.failing = append(r.failing, checks[i].Name)
		}
	}
}

package measure

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrHung means that a peer made no progress for as long as the watchdog waits.
var ErrHung = errors.New("hung")

// ErrStuck means that it did not even return when its context was cancelled. Its
// goroutines are left behind.
var ErrStuck = errors.New("and did not return when cancelled")

// Watchdog looks after work that might hang.
type Watchdog struct {
	Patience time.Duration // without progress, before the work is cancelled
	Grace    time.Duration // for the cancelled work to return
}

// Watch runs work and returns when it has, or when it is given up. Work calls
// alive whenever something was achieved. The error is ErrHung, joined with
// ErrStuck where that is so, or the end of ctx.
func (w Watchdog) Watch(ctx context.Context, work func(ctx context.Context, alive func())) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var beats atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		work(ctx, func() { beats.Add(1) })
	}()
	ticker := time.NewTicker(w.Patience / 10)
	defer ticker.Stop()
	for last, at := int64(0), time.Now(); ; {
		select {
		case <-done:
			return ctx.Err()
		case <-ctx.Done():
			return errors.Join(ctx.Err(), w.collect(done))
		case <-ticker.C:
		}
		if now := beats.Load(); now > last {
			last, at = now, time.Now()
		}
		if time.Since(at) < w.Patience {
			continue
		}
		cancel()
		return errors.Join(fmt.Errorf("%w: nothing happened for %v", ErrHung, w.Patience), w.collect(done))
	}
}

// collect waits for work that was cancelled.
func (w Watchdog) collect(done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-time.After(w.Grace):
		return ErrStuck
	}
}

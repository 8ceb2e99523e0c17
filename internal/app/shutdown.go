package app

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Shutdown lets readiness fail, waits for load balancers to see it, finishes
// the orders in flight, and closes what Start opened. When ctx or the drain
// timeout ends first, it cuts the rest off and returns an error with the cause.
// Calling it again returns the first outcome.
func (s *Shop) Shutdown(ctx context.Context) error {
	s.once.Do(func() { s.stopped = s.shutdown(ctx) })
	return s.stopped
}

func (s *Shop) shutdown(ctx context.Context) error {
	s.log.Info("shop closes")
	s.draining.Store(true)
	pause(ctx, s.drainDelay)

	ctx, cancel := context.WithTimeout(ctx, s.drainTimeout)
	defer cancel()
	var cut error
	if err := s.server.Shutdown(ctx); err != nil {
		cut = errors.Join(fmt.Errorf("orders in flight were cut off: %w", context.Cause(ctx)), s.server.Close())
	}
	<-s.done
	if err := errors.Join(cut, s.parts.close()); err != nil {
		return err
	}
	s.log.Info("shop is closed")
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

package app

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Shutdown lets readiness fail, waits for load balancers to see it, finishes the
// orders in flight, and closes the operator's API and all else that Start opened. When
// ctx or the drain timeout ends first, it cuts the rest off and returns an error
// with the cause. Jobs are ended at once; one that hangs is cut off as well, which is
// no error. Calling it again returns the first outcome.
func (s *Shop) Shutdown(ctx context.Context) error {
	s.once.Do(func() { s.stopped = s.shutdown(ctx) })
	return s.stopped
}

func (s *Shop) shutdown(ctx context.Context) error {
	s.log.Info("shop closes")
	s.draining.Store(true)
	jobs := s.jobs.end() // another instance goes on with them at once
	pause(ctx, s.drainDelay)

	ctx, cancel := context.WithTimeout(ctx, s.drainTimeout)
	defer cancel()
	var cut error
	if err := s.front.close(ctx); err != nil {
		cut = fmt.Errorf("orders in flight were cut off: %w", err)
	}
	<-s.done
	s.closeBack(ctx)
	s.serving.Wait()
	s.awaitJobs(ctx, jobs)
	if err := errors.Join(cut, s.parts.close()); err != nil {
		return err
	}
	s.log.Info("shop is closed")
	return nil
}

// lastWords is what the operator's requests may still take once the last order is
// done: a profile must not keep the shop from closing, and a restock that is cut
// off can be sent again.
const lastWords = time.Second

func (s *Shop) closeBack(ctx context.Context) {
	if s.back == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	if err := s.back.close(ctx); err != nil {
		s.log.Warn("operator's requests were cut off", "error", err)
	}
}

// awaitJobs gives those that were in the middle of something the rest of the time:
// another instance does again what is cut off.
func (s *Shop) awaitJobs(ctx context.Context, ended <-chan struct{}) {
	select {
	case <-ended: // also where ctx has ended as well
		return
	default:
	}
	select {
	case <-ended:
	case <-ctx.Done():
		s.log.Warn("jobs were cut off", "error", context.Cause(ctx))
	}
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

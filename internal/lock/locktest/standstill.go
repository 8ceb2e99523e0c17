package locktest

import (
	"sync"
	"testing"
	"time"
)

// standstill watches whether this machine runs, and returns a function that tells
// for how long at a stretch it did not, at most, since the call.
//
// Holder and successor of these tests are in one process. Where that stands still from
// before the end of the one until after the beginning of the other, the timers of both
// fire at once, and which is first tells nothing: such a round has to be done again.
func standstill(t *testing.T) (longest func() time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var worst time.Duration
	last := time.Now()
	look := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		worst, last = max(worst, now.Sub(last)), now
		return worst
	}
	var watch sync.WaitGroup
	done := make(chan struct{})
	watch.Go(func() {
		beat := time.NewTicker(2 * time.Millisecond)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				look()
			case <-done:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(done)
		watch.Wait()
	})
	return look
}

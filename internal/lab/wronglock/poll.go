package wronglock

import (
	"context"
	"math/rand/v2"
	"time"

	"example.com/shop/internal/lock"
)

// A waiter looks again after a random time, at first up to firstPause, and each time
// up to twice as long, so that a thousand of them leave Redis some room.
const (
	firstPause   = 2 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// poll asks until it is told yes. lock.ErrTimeout: Options.MaxWait has passed.
func (l *Lock) poll(ctx context.Context, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.maxWait, lock.ErrTimeout)
	defer cancel()
	for most := firstPause; ; most = min(2*most, longestPause) {
		taken, err := ask(ctx)
		switch {
		case ctx.Err() != nil && (err != nil || !taken):
			return context.Cause(ctx)
		case err != nil || taken:
			return err
		}
		select {
		case <-time.After(1 + rand.N(most)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

package lock

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Holder describes the holder of a key, as the store has it.
type Holder struct {
	Identity  string        // Options.Identity of the Locker; empty if it has none
	Owner     string        // random, for one acquisition; empty: the key is free
	Since     time.Time     // of the grant, about, by the store's clock; zero if the store does not know
	Remaining time.Duration // of the lease if it is not renewed any more; 0 if the store does not know
}

// Holder returns who holds the key, in whichever process; the zero Holder if it is free. It is true for the moment in
// which the store was asked: for people and logs, not for decisions.
func (l *Locker) Holder(ctx context.Context, key string) (Holder, error) {
	return l.inspect(ctx, key, "holder", false)
}

// ForceRelease takes the key from its holder, and returns whom it was taken from; the zero Holder if the key was free.
// It is for operators: the holder finds out with its next renewal, after a third of its TTL or so, and acts until
// then. A database that compares fences refuses its writes as soon as the next holder has written: the next fence is
// higher than any that the holder can have used. ErrLost: the holder has released the key meanwhile.
func (l *Locker) ForceRelease(ctx context.Context, key string) (Holder, error) {
	return l.inspect(ctx, key, "force release", true)
}

func (l *Locker) inspect(ctx context.Context, key, doing string, evict bool) (h Holder, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("lock %q: %s: %w", key, doing, err)
		}
	}()
	if err := checkKey(key); err != nil {
		return h, err
	}
	l.mu.Lock()
	if l.open.Err() != nil {
		l.mu.Unlock()
		return h, ErrClosed
	}
	l.work.Add(1)
	l.mu.Unlock()
	defer l.work.Done()
	ctx, cancel := context.WithTimeout(ctx, l.requestTimeout())
	defer cancel()
	h, err = l.backend.Holder(ctx, key)
	if err == nil && h.Owner != "" {
		if readable, _, found := strings.Cut(h.Owner[strings.IndexByte(h.Owner, ':')+1:], "/"); found {
			h.Identity = readable // "shop-1" of "shop-1/<random>", or, in Redis, of "<process>:shop-1/<random>"
		}
		if evict {
			err = l.backend.Evict(ctx, key, h.Owner)
		}
	}
	return h, noAnswer(ctx, err)
}

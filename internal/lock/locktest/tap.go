package locktest

import (
	"context"
	"errors"
	"sync"

	"example.com/shop/internal/lock"
)

// Tap is a Backend around another Backend. It counts calls, so that a test can wait for them, and can be cut.
type Tap struct {
	lock.Backend

	mu      sync.Mutex
	changed *sync.Cond   // a count has risen
	counts  map[Call]int // of calls that have begun
	cut     bool         // calls fail
}

// Call names a method of Backend.
type Call string

// The calls that a Tap knows.
const (
	Acquire Call = "acquire"
	Renew   Call = "renew"
	Release Call = "release"
	Wait    Call = "wait"
)

// ErrCut is the error of a call while the Tap is cut.
var ErrCut = errors.New("cut off")

// NewTap returns a Tap that passes all calls on.
func NewTap(b lock.Backend) *Tap {
	t := &Tap{Backend: b, counts: make(map[Call]int)}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// Cut makes all further calls fail, as if the process had died or its network had failed.
func (t *Tap) Cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut = true
}

// Count returns the number of calls of this kind that have begun.
func (t *Tap) Count(c Call) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[c]
}

// Seen returns a channel that is closed when n calls of this kind have begun.
func (t *Tap) Seen(c Call, n int) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.mu.Lock()
		defer t.mu.Unlock()
		for t.counts[c] < n {
			t.changed.Wait()
		}
	}()
	return done
}

// admit counts a call and returns nil if it may be sent.
func (t *Tap) admit(c Call) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[c]++
	t.changed.Broadcast()
	if t.cut {
		return ErrCut
	}
	return nil
}

// Acquire implements lock.Backend.
func (t *Tap) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	if err := t.admit(Acquire); err != nil {
		return lock.Grant{}, err
	}
	return t.Backend.Acquire(ctx, c)
}

// Renew implements lock.Backend.
func (t *Tap) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	if err := t.admit(Renew); err != nil {
		return 0, err
	}
	return t.Backend.Renew(ctx, c)
}

// Release implements lock.Backend.
func (t *Tap) Release(ctx context.Context, c lock.Claim) error {
	if err := t.admit(Release); err != nil {
		return err
	}
	return t.Backend.Release(ctx, c)
}

// Wait implements lock.Backend.
func (t *Tap) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	if err := t.admit(Wait); err != nil {
		return err
	}
	return t.Backend.Wait(ctx, c, g)
}

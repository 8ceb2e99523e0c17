package locktest

import (
	"context"
	"errors"
	"sync"

	"example.com/shop/internal/lock"
)

// Tap is a Backend around another one. It counts calls, and holds requests back, so that a test decides what happens first.
type Tap struct {
	lock.Backend

	mu      sync.Mutex
	changed *sync.Cond             // a count has risen
	counts  map[Call]int           // of calls that have begun
	gates   map[Call]chan struct{} // requests wait here before they are sent
	cut     bool                   // nothing gets through
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

// ErrCut is what a caller gets while the Tap is cut.
var ErrCut = errors.New("cut off")

// NewTap returns a Tap that lets everything through.
func NewTap(b lock.Backend) *Tap {
	t := &Tap{Backend: b, counts: make(map[Call]int), gates: make(map[Call]chan struct{})}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// HoldRequests keeps requests of this kind from the store until Open. A request whose context ends before that is not sent
// any more.
func (t *Tap) HoldRequests(c Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gates[c] = make(chan struct{})
}

// Open lets held requests through.
func (t *Tap) Open() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, gate := range t.gates {
		close(gate)
	}
	clear(t.gates)
}

// Cut lets nothing through any more, as if the process had died or its network had failed.
func (t *Tap) Cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut = true
}

// Count returns how many calls of this kind have begun.
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

// admit counts a call and returns nil when it may be sent.
func (t *Tap) admit(ctx context.Context, c Call) error {
	t.mu.Lock()
	t.counts[c]++
	t.changed.Broadcast()
	gate, cut := t.gates[c], t.cut
	t.mu.Unlock()
	switch {
	case cut:
		return ErrCut
	case gate == nil:
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Acquire implements lock.Backend.
func (t *Tap) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	if err := t.admit(ctx, Acquire); err != nil {
		return lock.Grant{}, err
	}
	return t.Backend.Acquire(ctx, c)
}

// Renew implements lock.Backend.
func (t *Tap) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	if err := t.admit(ctx, Renew); err != nil {
		return 0, err
	}
	return t.Backend.Renew(ctx, c)
}

// Release implements lock.Backend.
func (t *Tap) Release(ctx context.Context, c lock.Claim) error {
	if err := t.admit(ctx, Release); err != nil {
		return err
	}
	return t.Backend.Release(ctx, c)
}

// Wait implements lock.Backend.
func (t *Tap) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	if err := t.admit(ctx, Wait); err != nil {
		return err
	}
	return t.Backend.Wait(ctx, c, g)
}

package locktest

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.com/shop/internal/lock"
)

// Tap is a Backend around another one. It counts calls, and holds requests or answers back, so that a test decides what
// happens first.
type Tap struct {
	lock.Backend

	mu      sync.Mutex
	changed *sync.Cond             // begun or ended has risen
	begun   map[Call]int           // calls
	ended   map[Call]int           // calls that have returned
	before  map[Call]chan struct{} // calls wait here before they are sent
	after   map[Call]chan struct{} // answers wait here before they come back
	lose    map[Call]int           // so many answers are lost
	cut     bool                   // nothing gets through
	deaf    bool                   // waiters are not notified
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

// ErrAnswerLost is what a caller gets for an answer that the Tap lost.
var ErrAnswerLost = errors.New("answer lost")

// NewTap returns a Tap that lets everything through.
func NewTap(b lock.Backend) *Tap {
	t := &Tap{
		Backend: b,
		begun:   make(map[Call]int),
		ended:   make(map[Call]int),
		before:  make(map[Call]chan struct{}),
		after:   make(map[Call]chan struct{}),
		lose:    make(map[Call]int),
	}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// HoldRequests keeps requests of this kind from the store until Open. A request whose context ends before that is not sent
// any more.
func (t *Tap) HoldRequests(c Call) { t.set(func() { t.before[c] = make(chan struct{}) }) }

// HoldAnswers keeps answers of this kind from the caller until Open. A caller whose context ends before that does not learn
// what the store has done.
func (t *Tap) HoldAnswers(c Call) { t.set(func() { t.after[c] = make(chan struct{}) }) }

// Open lets everything through again.
func (t *Tap) Open() {
	t.set(func() {
		for _, gates := range []map[Call]chan struct{}{t.before, t.after} {
			for c, gate := range gates {
				close(gate)
				delete(gates, c)
			}
		}
	})
}

// LoseAnswer makes the next answer of this kind an ErrAnswerLost, after the store has done what was asked.
func (t *Tap) LoseAnswer(c Call) { t.set(func() { t.lose[c]++ }) }

// Cut lets nothing through any more, as if the process had died or its network had failed.
func (t *Tap) Cut() { t.set(func() { t.cut = true }) }

// Deafen makes waiters miss every notification.
func (t *Tap) Deafen() { t.set(func() { t.deaf = true }) }

func (t *Tap) set(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
	t.changed.Broadcast()
}

// Count returns how many calls of this kind have begun.
func (t *Tap) Count(c Call) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.begun[c]
}

// Seen returns a channel that is closed when n calls of this kind have begun.
func (t *Tap) Seen(c Call, n int) <-chan struct{} { return t.await(t.begun, c, n) }

// Answered returns a channel that is closed when n calls of this kind have returned.
func (t *Tap) Answered(c Call, n int) <-chan struct{} { return t.await(t.ended, c, n) }

func (t *Tap) await(counts map[Call]int, c Call, n int) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.mu.Lock()
		defer t.mu.Unlock()
		for counts[c] < n {
			t.changed.Wait()
		}
	}()
	return done
}

// through lets one call through the Tap.
func through[T any](ctx context.Context, t *Tap, c Call, send func() (T, error)) (T, error) {
	var none T
	t.set(func() { t.begun[c]++ })
	defer t.set(func() { t.ended[c]++ })
	t.mu.Lock()
	gate, cut := t.before[c], t.cut
	t.mu.Unlock()
	if cut {
		return none, ErrCut
	}
	if err := pass(ctx, gate); err != nil {
		return none, err
	}
	answer, err := send()
	t.mu.Lock()
	gate = t.after[c]
	lost := t.lose[c] > 0
	if lost {
		t.lose[c]--
	}
	t.mu.Unlock()
	if held := pass(ctx, gate); held != nil {
		return none, held
	}
	if lost {
		return none, ErrAnswerLost
	}
	return answer, err
}

// pass waits for a gate to be opened, and no longer than ctx. Nil is no gate.
func pass(ctx context.Context, gate <-chan struct{}) error {
	if gate == nil {
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
	return through(ctx, t, Acquire, func() (lock.Grant, error) { return t.Backend.Acquire(ctx, c) })
}

// Renew implements lock.Backend.
func (t *Tap) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	return through(ctx, t, Renew, func() (int64, error) { return t.Backend.Renew(ctx, c) })
}

// Release implements lock.Backend.
func (t *Tap) Release(ctx context.Context, c lock.Claim) error {
	_, err := through(ctx, t, Release, func() (any, error) { return nil, t.Backend.Release(ctx, c) })
	return err
}

// Wait implements lock.Backend.
func (t *Tap) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	_, err := through(ctx, t, Wait, func() (any, error) { return nil, t.wait(ctx, c, g) })
	return err
}

func (t *Tap) wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	t.mu.Lock()
	deaf := t.deaf
	t.mu.Unlock()
	if !deaf {
		return t.Backend.Wait(ctx, c, g)
	}
	select {
	case <-time.After(g.Retry + time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

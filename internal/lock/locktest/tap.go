package locktest

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.com/shop/internal/lock"
)

// Tap is a Backend around another one. It counts calls, and holds requests or
// answers back, so that a test decides what happens first.
type Tap struct {
	lock.Backend

	mu     sync.Mutex
	counts map[Call]int           // calls that have begun
	ended  map[Call]int           // calls that have returned
	seen   *sync.Cond             // either has risen
	before map[Call]chan struct{} // calls wait here before they are sent
	after  map[Call]chan struct{} // answers wait here before they come back
	lose   map[Call]int           // so many answers are lost
	cut    bool                   // nothing gets through
	deaf   bool                   // waiters are not told
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
		counts:  make(map[Call]int),
		ended:   make(map[Call]int),
		before:  make(map[Call]chan struct{}),
		after:   make(map[Call]chan struct{}),
		lose:    make(map[Call]int),
	}
	t.seen = sync.NewCond(&t.mu)
	return t
}

// HoldRequests keeps requests of this kind from the store until Open. A request
// whose context ends before that is not sent any more.
func (t *Tap) HoldRequests(c Call) { t.gate(t.before, c) }

// HoldAnswers keeps answers of this kind from the caller until Open. The caller
// whose context ends before that is not told what the store has done.
func (t *Tap) HoldAnswers(c Call) { t.gate(t.after, c) }

func (t *Tap) gate(gates map[Call]chan struct{}, c Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gates[c] = make(chan struct{})
}

// Open lets everything through again.
func (t *Tap) Open() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, gates := range []map[Call]chan struct{}{t.before, t.after} {
		for c, gate := range gates {
			close(gate)
			delete(gates, c)
		}
	}
}

// LoseAnswer makes the next answer of this kind an ErrAnswerLost, after the
// store has done what was asked.
func (t *Tap) LoseAnswer(c Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lose[c]++
}

// Cut lets nothing through any more, as if the process had died or its network
// had: the store hears no more of it.
func (t *Tap) Cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut = true
}

// Deafen makes waiters miss every call.
func (t *Tap) Deafen() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deaf = true
}

// Count returns how many calls of this kind have begun.
func (t *Tap) Count(c Call) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[c]
}

// Seen returns a channel that is closed when n calls of this kind have begun.
func (t *Tap) Seen(c Call, n int) <-chan struct{} { return t.await(t.counts, c, n) }

// Answered returns a channel that is closed when n calls of this kind have
// returned.
func (t *Tap) Answered(c Call, n int) <-chan struct{} { return t.await(t.ended, c, n) }

func (t *Tap) await(counts map[Call]int, c Call, n int) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.mu.Lock()
		defer t.mu.Unlock()
		for counts[c] < n {
			t.seen.Wait()
		}
	}()
	return done
}

// enter is called before a request, leave before its answer.
func (t *Tap) enter(ctx context.Context, c Call) error {
	t.count(t.counts, c)
	t.mu.Lock()
	gate, cut := t.before[c], t.cut
	t.mu.Unlock()
	if cut {
		return ErrCut
	}
	return pass(ctx, gate)
}

func (t *Tap) leave(ctx context.Context, c Call) error {
	t.mu.Lock()
	gate := t.after[c]
	lost := t.lose[c] > 0
	if lost {
		t.lose[c]--
	}
	t.mu.Unlock()
	if err := pass(ctx, gate); err != nil {
		return err
	}
	if lost {
		return ErrAnswerLost
	}
	return nil
}

func (t *Tap) count(counts map[Call]int, c Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts[c]++
	t.seen.Broadcast()
}

// pass waits for a gate to be opened, and no longer than ctx: a backend "return[s]
// by then, also where the store is silent". Nil is no gate.
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
	defer t.count(t.ended, Acquire)
	if err := t.enter(ctx, Acquire); err != nil {
		return lock.Grant{}, err
	}
	g, err := t.Backend.Acquire(ctx, c)
	if lost := t.leave(ctx, Acquire); lost != nil {
		return lock.Grant{}, lost
	}
	return g, err
}

// Renew implements lock.Backend.
func (t *Tap) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	defer t.count(t.ended, Renew)
	if err := t.enter(ctx, Renew); err != nil {
		return 0, err
	}
	fence, err := t.Backend.Renew(ctx, c)
	if lost := t.leave(ctx, Renew); lost != nil {
		return 0, lost
	}
	return fence, err
}

// Release implements lock.Backend.
func (t *Tap) Release(ctx context.Context, c lock.Claim) error {
	defer t.count(t.ended, Release)
	if err := t.enter(ctx, Release); err != nil {
		return err
	}
	err := t.Backend.Release(ctx, c)
	if lost := t.leave(ctx, Release); lost != nil {
		return lost
	}
	return err
}

// Wait implements lock.Backend.
func (t *Tap) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	defer t.count(t.ended, Wait)
	if err := t.enter(ctx, Wait); err != nil {
		return err
	}
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

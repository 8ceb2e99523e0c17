package measure

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/loadtest/peers/peer"
)

// fake is a peer of one slot; its kinds of misbehaviour are switched on by name.
type fake struct {
	slot   chan struct{}
	open   bool          // lets everybody in
	forget int           // the turn after which the slot is never freed
	deaf   chan struct{} // if set: waits for it, and not for contexts
	broken error         // of every release

	turns int // guarded by the slot
}

func (f *fake) Acquire(ctx context.Context, _ string) (func() error, error) {
	if f.open {
		return func() error { return nil }, nil
	}
	gone := ctx.Done()
	if f.deaf != nil {
		gone = f.deaf
	}
	select {
	case f.slot <- struct{}{}:
	case <-gone:
		return nil, errors.New("gave up")
	}
	time.Sleep(time.Millisecond)
	return func() error {
		if f.turns++; f.turns != f.forget {
			<-f.slot
		}
		return f.broken
	}, nil
}

func (f *fake) Close() error { return nil }

func runFake(t *testing.T, f *fake, a Amount) Counts {
	t.Helper()
	f.slot = make(chan struct{}, 1)
	p := peer.Peer{Name: "fake", Open: func(context.Context, string, string) (peer.Client, error) { return f, nil }}
	l := Load{Clients: 2, Goroutines: 3, Keys: 1, Hold: time.Millisecond}
	counts, err := l.Run(t.Context(), p, "", "key", a, Watchdog{Patience: 10 * time.Second, Grace: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

func TestLoad_Run(t *testing.T) {
	t.Run("a lock", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := runFake(t, &fake{}, Amount{Time: time.Second})
			if !c.Right() {
				t.Errorf("got %+v, want nothing wrong", c)
			}
			if c.Turns != 500 || c.PerSecond() != 500 {
				t.Errorf("got %d turns, %v a second, want 500 of 2 ms in a second", c.Turns, c.PerSecond())
			}
			if most, least := c.Fairness(); len(c.PerClient) != 2 || most+least != 500 {
				t.Errorf("got %v turns per client, want two that add up to 500", c.PerClient)
			}
			if c.LongestWait < 2*time.Millisecond {
				t.Errorf("longest wait: got %v, want at least another's turn", c.LongestWait)
			}
		})
	})
	t.Run("a number of turns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := runFake(t, &fake{}, Amount{Turns: 100})
			if c.Turns != 100 || c.Elapsed != 200*time.Millisecond {
				t.Errorf("got %d turns in %v, want 100 in 200ms", c.Turns, c.Elapsed)
			}
		})
	})
	t.Run("lets two in at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := runFake(t, &fake{open: true}, Amount{Time: time.Second})
			if c.Overlaps == 0 || c.Lost == 0 || c.Right() {
				t.Errorf("got %+v, want overlaps and lost updates", c)
			}
		})
	})
	t.Run("hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := runFake(t, &fake{forget: 20}, Amount{Time: time.Second})
			if !errors.Is(c.Hung, ErrHung) || errors.Is(c.Hung, ErrStuck) || c.Right() {
				t.Errorf("got %+v, want a hang that ended when cancelled", c)
			}
			if c.Turns != 14 { // 20 less the first of each of six
				t.Errorf("got %d turns before it, want 14", c.Turns)
			}
			if c.LongestWait < 10*time.Second {
				t.Errorf("longest wait: got %v, want those that never ended as well", c.LongestWait)
			}
		})
	})
	t.Run("hangs and hears nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			deaf := make(chan struct{})
			c := runFake(t, &fake{forget: 20, deaf: deaf}, Amount{Time: time.Second})
			if !errors.Is(c.Hung, ErrStuck) {
				t.Errorf("got %+v, want a hang that did not end", c)
			}
			close(deaf)
		})
	})
	t.Run("fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := runFake(t, &fake{broken: errors.New("no")}, Amount{Time: time.Second})
			if c.Turns != 0 || c.Errors == 0 || c.FirstError == nil || c.Right() {
				t.Errorf("got %+v, want errors and no turns", c)
			}
		})
	})
}

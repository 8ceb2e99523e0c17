package locktest

import (
	"context"
	"errors"
	"testing"

	"example.com/shop/internal/lock"
)

// deadline: "that timer cancels the lease's context by itself, with no store I/O
// in its way: a renewal that hangs must not delay it." Whoever gets the key
// next finds the former holder's context ended already.
func deadline(t *testing.T, h Harness) {
	for name, fault := range map[string]func(process){
		"renewal hangs":          func(p process) { p.tap.HoldRequests(Renew) },
		"renewal's answer hangs": func(p process) { p.tap.HoldAnswers(Renew) },
		"store cannot be heard":  h.cut,
	} {
		t.Run(name, func(t *testing.T) {
			need(t, h.recovers(), "Expires or Cut")
			for enough := bounded(t); ; {
				stood := standstill(t)
				// The margin is for timers that fire late, as they do on a busy machine.
				ps, k := h.processes(t, 2, lock.Options{TTL: short, Margin: short / 3}), key(t)
				lease := acquire(t, ps[0].Locker, k)
				fault(ps[0])
				next := acquire(t, ps[1].Locker, k)
				alive, left := lease.Context().Err() == nil, lease.Remaining()
				giveBack(t, next)
				if alive && left == 0 && stood() > short/6 && enough.Err() == nil {
					continue
				}
				if alive {
					t.Error("two live holders: the first one's context goes on")
				} else if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
					t.Errorf("cause %v, want ErrLost", cause)
				}
				if left != 0 {
					t.Errorf("%v remain of a lost lease", left)
				}
				return
			}
		})
	}
}

// recovers reports whether a key gets over the end of its holder.
func (h Harness) recovers() bool { return h.Expires || h.Cut != nil }

// cut lets the store hear no more of the process.
func (h Harness) cut(p process) {
	p.tap.Cut()
	if h.Cut != nil {
		h.Cut(p.tap.Backend)
	}
}

// crashedHolder: a holder that the store hears no more of blocks the key until
// its TTL has passed, or its session, and no longer.
func crashedHolder(t *testing.T, h Harness) {
	need(t, h.recovers(), "Expires or Cut")
	// Only one dies: the TTL of the others bounds no request of this test.
	ps, k := append(h.processes(t, 1, lock.Options{TTL: short}), h.processes(t, 2, lock.Options{TTL: long})...), key(t)
	acquire(t, ps[0].Locker, k)
	h.cut(ps[0])
	done := make(chan error, 2)
	for _, p := range ps[1:] {
		go func() {
			lease, err := p.Acquire(bounded(t), k)
			if err == nil {
				err = lease.Release()
			}
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Errorf("waiter of a crashed holder: %v", err)
		}
	}
}

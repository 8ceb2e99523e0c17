package lock

import (
	"sync"
	"time"
)

// alarms are to ring at their times, and share one timer. Nearly all are cleared
// long before: with a runtime timer each, setting and stopping them would cost a
// turn more than all else that it does in the process. The timer is left as it is
// when an alarm is cleared, and so is set once in a while, not once in a turn.
//
// They are kept in the order of their times. The last one set is due last, or
// nearly, where all of one kind take as long: hence one alarms for each kind.
type alarms struct {
	mu    sync.Mutex // never held while an alarm rings
	ring  alarm      // of alarms in order; itself the end
	timer *time.Timer
	armed time.Time // when the timer fires; zero: it does not
}

// alarm calls wake at its time, in a goroutine of its own, unless it was cleared
// before. Alarms that are due together share the goroutine: wake returns soon.
type alarm struct {
	wake       func()
	due        time.Time
	prev, next *alarm // nil: not set
}

// set makes x ring at a time, instead of at the one it was set to before.
func (a *alarms) set(x *alarm, due time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ring.next == nil {
		a.ring.prev, a.ring.next = &a.ring, &a.ring
	}
	x.unlink()
	x.due = due
	before := a.ring.prev
	for before != &a.ring && before.due.After(due) {
		before = before.prev
	}
	x.prev, x.next = before, before.next
	x.prev.next, x.next.prev = x, x
	a.arm()
}

// clear makes x not ring. It may be ringing already.
func (a *alarms) clear(x *alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x.unlink()
}

// stop clears all.
func (a *alarms) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.ring.next != nil && a.ring.next != &a.ring {
		a.ring.next.unlink()
	}
	if a.timer != nil {
		a.timer.Stop()
		a.armed = time.Time{}
	}
}

// arm sees to it that the timer fires when the first alarm is due, or before.
func (a *alarms) arm() {
	first := a.ring.next
	if first == &a.ring || (!a.armed.IsZero() && !first.due.Before(a.armed)) {
		return
	}
	a.armed = first.due
	if a.timer == nil {
		a.timer = time.AfterFunc(time.Until(a.armed), a.fire)
		return
	}
	a.timer.Reset(time.Until(a.armed))
}

func (a *alarms) fire() {
	a.mu.Lock()
	a.armed = time.Time{}
	var due []*alarm
	for now := time.Now(); a.ring.next != &a.ring && !a.ring.next.due.After(now); {
		due = append(due, a.ring.next)
		a.ring.next.unlink()
	}
	a.arm()
	a.mu.Unlock()
	for _, x := range due {
		x.wake()
	}
}

func (x *alarm) unlink() {
	if x.next != nil {
		x.prev.next, x.next.prev = x.next, x.prev
		x.prev, x.next = nil, nil
	}
}

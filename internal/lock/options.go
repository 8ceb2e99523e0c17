package lock

import (
	"cmp"
	"fmt"
	"time"
)

// Options of a Locker. The zero value is a good one.
type Options struct {
	// TTL is how long the store keeps a lease that is not renewed, and so how
	// long a crashed holder blocks the key. It is renewed every third of it.
	// Default 10 s, at least 100 ms, a whole number of milliseconds.
	TTL time.Duration

	// Margin is how much earlier than the store a lease's holder stops trusting
	// it: room for clocks that run at different speeds and for timers that fire
	// late. Default a tenth of TTL, at most half of it.
	Margin time.Duration

	// MaxWait bounds the wait for a key, beside the caller's context. Default
	// 30 s; negative: the context alone.
	MaxWait time.Duration

	// MaxHold ends a lease that is held for longer, however well it is renewed,
	// so that a hung job does not keep its lock for ever. Default 0: no limit.
	MaxHold time.Duration

	// MaxQueue is how many callers of this process may wait for one key.
	// Default 10,000.
	MaxQueue int

	// MaxHandoffs is how often in a row a lease is handed to the next waiter of
	// this process before it goes back to the store, where other processes wait.
	// Default 100, at most 65,535, which is how many numbers a store leaves free
	// after each fence; negative: never handed over.
	MaxHandoffs int

	// HandoffTime is for how long it is handed over in a row. Default 50 ms.
	HandoffTime time.Duration

	// Observer is called when something happens; nil for none.
	Observer Observer
}

// Validate reports the first option that cannot work, by name. New panics with
// what Validate returns: call it first where options come from a user.
func (o Options) Validate() error {
	switch d := o.withDefaults(); {
	case d.TTL < 100*time.Millisecond:
		return fmt.Errorf("lock: TTL %v: want at least 100ms", o.TTL)
	case d.TTL%time.Millisecond != 0:
		return fmt.Errorf("lock: TTL %v: want whole milliseconds", o.TTL)
	case d.Margin < 0 || d.Margin > d.TTL/2:
		return fmt.Errorf("lock: Margin %v: want 0 to half of the TTL %v", o.Margin, d.TTL)
	case d.MaxHold < 0:
		return fmt.Errorf("lock: MaxHold %v: want 0 for no limit, or more", o.MaxHold)
	case d.MaxQueue < 0:
		return fmt.Errorf("lock: MaxQueue %d: want 0 for the default, or more", o.MaxQueue)
	case d.MaxHandoffs >= fenceGap:
		return fmt.Errorf("lock: MaxHandoffs %d: want at most %d", o.MaxHandoffs, fenceGap-1)
	case d.HandoffTime < 0:
		return fmt.Errorf("lock: HandoffTime %v: want 0 for the default, or more", o.HandoffTime)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.TTL = cmp.Or(o.TTL, 10*time.Second)
	o.Margin = cmp.Or(o.Margin, o.TTL/10)
	o.MaxWait = cmp.Or(o.MaxWait, 30*time.Second)
	o.MaxQueue = cmp.Or(o.MaxQueue, 10_000)
	o.MaxHandoffs = cmp.Or(o.MaxHandoffs, 100)
	o.HandoffTime = cmp.Or(o.HandoffTime, 50*time.Millisecond)
	return o
}

// Observer is called when something happens to the leases of a Locker, for metrics.
// Its methods are called by many goroutines at once, while callers may wait for the
// key: they return quickly and do not call the Locker. One that panics in Waited,
// Contended, Held or HandedOver makes the call panic that it was about, and leaves
// no key held.
type Observer interface {
	// Waited: an Acquire or TryAcquire has ended after d; err is nil if it got
	// the lease.
	Waited(key string, d time.Duration, err error)

	// Contended: the store said that another process holds the key. Called once
	// for each time that this process begins to wait.
	Contended(key string)

	// Held: a lease was released after d.
	Held(key string, d time.Duration)

	// HandedOver: it went to the next waiter of this process, without asking the
	// store.
	HandedOver(key string)

	// Renewed: a renewal has ended after d, with the store's error if it failed.
	Renewed(key string, d time.Duration, err error)

	// Lost: a lease ended before it was released. The cause is that of the
	// lease's context.
	Lost(key string, cause error)
}

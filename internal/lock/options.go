package lock

import (
	"cmp"
	"fmt"
	"regexp"
	"time"
)

// Options of a Locker. The zero value is a good one.
type Options struct {
	// TTL is how long the store keeps a lease that is not renewed, and so how long a crashed holder blocks the key (longer
	// if the store's clock steps back: see ForceRelease). It is renewed every third of it. Default 10 s; 100 ms to a year,
	// a whole number of milliseconds.
	TTL time.Duration

	// Margin is how much earlier than the store a lease's holder stops trusting it: room for clocks that run at
	// different speeds and for timers that fire late. Default a tenth of TTL, at most half of it.
	Margin time.Duration

	// MaxWait bounds the wait for a key, beside the caller's context. Default 30 s; negative: the context alone.
	MaxWait time.Duration

	// MaxHold is for holders that hang: a lease that was held for this long is not renewed any more, and so ends at most a
	// TTL later. A hand-off starts the time anew. Default 0: a lease is renewed for as long as one of its contexts has not
	// ended.
	MaxHold time.Duration

	// MaxQueue is how many callers of this process may wait for one key. Default 10,000.
	MaxQueue int

	// HandoffTime is for how long a lease is handed to the next waiter of this process before it goes back to the
	// store, where other processes wait. Default 50 ms; negative: never handed over.
	HandoffTime time.Duration

	// Identity is a name for people, such as that of the instance: Locker.Holder shows it. At most 64 letters, digits
	// and _.@-; several Lockers may have the same.
	Identity string

	// Observer is called when something happens.
	Observer Observer
}

var identityForm = regexp.MustCompile(`^[\w.@-]{0,64}$`)

// checked returns the options with their defaults, and an error that names the first invalid one.
func (o Options) checked() (Options, error) {
	o.TTL = cmp.Or(o.TTL, 10*time.Second)
	o.Margin = cmp.Or(o.Margin, o.TTL/10)
	o.MaxWait = cmp.Or(o.MaxWait, 30*time.Second)
	o.MaxQueue = cmp.Or(o.MaxQueue, 10_000)
	o.HandoffTime = cmp.Or(o.HandoffTime, 50*time.Millisecond)
	switch {
	case o.TTL < 100*time.Millisecond || o.TTL > 365*24*time.Hour || o.TTL%time.Millisecond != 0:
		return o, fmt.Errorf("lock: TTL %v: want whole milliseconds, 100ms to a year", o.TTL)
	case o.Margin < 0 || o.Margin > o.TTL/2:
		return o, fmt.Errorf("lock: Margin %v: want 0 to half of the TTL %v", o.Margin, o.TTL)
	case o.MaxHold < 0:
		return o, fmt.Errorf("lock: MaxHold %v: want 0 for no limit, or more", o.MaxHold)
	case o.MaxQueue < 0:
		return o, fmt.Errorf("lock: MaxQueue %d: want 0 for the default, or more", o.MaxQueue)
	case !identityForm.MatchString(o.Identity):
		return o, fmt.Errorf("lock: Identity %q: want at most 64 letters, digits and _.@-", o.Identity)
	}
	return o, nil
}

// Observer is a set of functions that are called when something happens to the leases of a Locker, for metrics. Those that
// are nil are left out. Many goroutines call them at once, while callers may wait for the key: they return quickly, do not
// call the Locker and do not panic.
type Observer struct {
	// Waited: an Acquire or TryAcquire has ended after d. err is its error; nil if it got the lease. AcquireAll counts as a
	// TryAcquire of each key, and an Acquire of each key that it asks for again.
	Waited func(key string, d time.Duration, err error)

	// Contended: another process holds the key. Called once for each caller that has to wait for it.
	Contended func(key string)

	// Held: a lease was released after d.
	Held func(key string, d time.Duration)

	// Lost: a lease ended before it was released. The cause is that of the lease's context.
	Lost func(key string, cause error)
}

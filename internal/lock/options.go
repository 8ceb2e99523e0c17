package lock

import (
	"cmp"
	"fmt"
	"regexp"
	"time"
)

// Options of a Locker. The zero value works.
type Options struct {
	// TTL is the time for which the store keeps a lease that is not renewed. A crashed holder blocks the key for this
	// long, or longer if the store's clock steps back: see ForceRelease. A lease is renewed every third of the TTL.
	// Default 10 s; 100 ms to a year, a whole number of milliseconds.
	TTL time.Duration

	// Margin is the time by which a holder stops trusting a lease before the store ends it. It allows for clocks that
	// run at different speeds and for timers that fire late. Default a tenth of TTL, at most half of TTL.
	Margin time.Duration

	// MaxWait bounds the wait for a key, as the caller's context does. Default 30 s; negative: only the context.
	MaxWait time.Duration

	// MaxHold is for holders that hang. A lease that was held for this long is not renewed any more, and so ends at most a
	// TTL later. A hand-off starts the time again. Default 0: a lease is renewed until all its contexts have ended.
	MaxHold time.Duration

	// MaxQueue is the number of callers of this process that may wait for one key. Default 10,000.
	MaxQueue int

	// HandoffTime is the time for which a lease is handed from waiter to waiter of this process before it goes back to the
	// store, where other processes wait. Default 50 ms; negative: no hand-offs.
	HandoffTime time.Duration

	// Identity is a name for people, such as the name of the instance. Locker.Holder shows it. At most 64 letters, digits
	// and _.@-; several Lockers may have the same Identity.
	Identity string

	// Observer is told of the events of leases.
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

// Observer is a set of functions that a Locker calls on events of its leases, for metrics. Any of them may be nil. Many
// goroutines call them at once, and callers may wait for the key meanwhile. So the functions must return quickly, must not
// call the Locker, and must not panic.
type Observer struct {
	// Waited: an Acquire or TryAcquire has ended after d. err is its error, nil if it got the lease. AcquireAll counts as a
	// TryAcquire of each key, and as an Acquire of each key that it waits for.
	Waited func(key string, d time.Duration, err error)

	// Contended: another process holds the key. It is called once for each caller that has to wait for such a key.
	Contended func(key string)

	// Held: a lease was released after d.
	Held func(key string, d time.Duration)

	// Lost: a lease ended before it was released. cause is the cause of the lease's context.
	Lost func(key string, cause error)
}

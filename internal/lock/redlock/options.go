package redlock

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"
)

// Options of a Backend. The zero value is a good one for leases of seconds.
type Options struct {
	// Prefix is what all keys start with. Default "redlock:".
	Prefix string

	// NodeTimeout is how long an answer of a node is waited for. It should be far
	// above a round trip, or a slow moment looks like an outage, and far below a
	// third of the TTL, which is how long a Locker waits for a renewal. Default 50 ms.
	NodeTimeout time.Duration

	// Tries is how many attempts a caller that waits has. Default 32.
	Tries int

	// Delay and Jitter make the time between two attempts: Delay, and a random
	// part of Jitter. Defaults 50 ms and 200 ms. Jitter is to be many times what
	// it takes to ask all nodes, so that two who split the votes do not meet again;
	// Delay is a NodeTimeout, so that what a failed attempt took is given back
	// before the next. Where leases last a millisecond and the nodes are near,
	// 5 ms and 20 ms with ten times the Tries wake waiters sooner, at the price of
	// so many more requests.
	Delay  time.Duration
	Jitter time.Duration

	// DriftFactor is the share of the TTL by which the clocks of nodes and clients
	// may differ in speed; 2 ms are added for the granularity of expiry. Default
	// 0.01.
	DriftFactor float64
}

// Validate reports the first option that cannot work, by name.
func (o Options) Validate() error {
	switch d := o.withDefaults(); {
	case d.NodeTimeout < time.Millisecond:
		return fmt.Errorf("redlock: NodeTimeout %v: want at least 1ms", o.NodeTimeout)
	case d.Tries < 1:
		return fmt.Errorf("redlock: Tries %d: want at least 1", o.Tries)
	case d.Delay < 0:
		return fmt.Errorf("redlock: Delay %v: want 0 for the default, or more", o.Delay)
	case d.Jitter < 0:
		return fmt.Errorf("redlock: Jitter %v: want 0 for the default, or more", o.Jitter)
	case !(d.DriftFactor > 0 && d.DriftFactor < 1): // also not a NaN
		return fmt.Errorf("redlock: DriftFactor %v: want more than 0 and less than 1", o.DriftFactor)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Prefix = cmp.Or(o.Prefix, "redlock:")
	o.NodeTimeout = cmp.Or(o.NodeTimeout, 50*time.Millisecond)
	o.Tries = cmp.Or(o.Tries, 32)
	o.Delay = cmp.Or(o.Delay, 50*time.Millisecond)
	o.Jitter = cmp.Or(o.Jitter, 200*time.Millisecond)
	o.DriftFactor = cmp.Or(o.DriftFactor, 0.01)
	return o
}

// pause is the time until the next attempt.
func (o Options) pause() time.Duration {
	return o.Delay + rand.N(o.Jitter)
}

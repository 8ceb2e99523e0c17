package locksim

import "time"

// clocks are the store's. In a real store they are one; here they step apart
// from each other, because the rules that hold then differ: fences may be minted
// by any clock, but leases can only last as long as the other one is right.
type clocks struct {
	start  time.Time
	rate   float64
	fence  time.Duration // how far it is ahead
	expiry time.Duration
}

// elapsed is what a clock that never stepped would show.
func (c *clocks) elapsed() time.Duration {
	return time.Duration(float64(time.Since(c.start)) * c.rate)
}

// mint is the fence clock, in microseconds since 1970.
func (c *clocks) mint() int64 {
	return c.start.Add(c.elapsed() + c.fence).UnixMicro()
}

// now is the expiry clock.
func (c *clocks) now() time.Duration { return c.elapsed() + c.expiry }

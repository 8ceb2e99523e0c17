package load

import (
	"sync/atomic"
	"time"
)

// never is when a clock opens that has not opened yet.
const never = int64(1<<63 - 1)

// clock says what counts: rates are of the answers, latencies of the orders sent,
// since it opened. Its times are since began. Any number of buyers may use it.
type clock struct {
	began time.Time
	warm  time.Duration // it opens no sooner
	open  time.Duration // for so long
	left  atomic.Int64  // buyers without a first answer
	from  atomic.Int64  // when it opened
}

// newClock opens when every buyer had an answer: until then connections of the
// shop's own are dialled, and a strategy with a long queue has not shown its pace.
func newClock(buyers int, warm, open time.Duration) *clock {
	c := &clock{began: time.Now(), warm: warm, open: open}
	c.left.Store(int64(buyers))
	c.from.Store(never)
	return c
}

// openClock is open from the start.
func openClock(open time.Duration) *clock { return &clock{began: time.Now(), open: open} }

func (c *clock) now() time.Duration { return time.Since(c.began) }

// firstAnswer is for each buyer to say once.
func (c *clock) firstAnswer(at time.Duration) {
	if c.left.Add(-1) == 0 {
		c.from.Store(int64(max(at, c.warm)))
	}
}

// opened reports whether the clock was open at some time before.
func (c *clock) opened(at time.Duration) bool { return int64(at) >= c.from.Load() }

func (c *clock) ended(at time.Duration) bool { return c.opened(at - c.open) }

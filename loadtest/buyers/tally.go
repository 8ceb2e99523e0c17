package buyers

import (
	"sync/atomic"
	"time"
)

// Tally counts while a race runs, for whoever watches. It may be read at any
// time.
type Tally struct {
	Connected, Ordered, Refused, Errors, Retries atomic.Int64

	Again, Cancelled atomic.Int64 // orders that were sent a second time, that were cancelled

	course atomic.Pointer[course]
}

// course is where a race begins and where it ends: by the clock or by a number of
// answers, whichever comes first.
type course struct {
	start   time.Time
	length  time.Duration // 0: no end
	answers int64
}

func (t *Tally) begin(start time.Time, p Pace, orders int64) {
	t.course.Store(&course{start: start, length: p.Duration, answers: orders})
}

// Orders returns how many orders the race has at most; 0 before it has begun.
func (t *Tally) Orders() int64 {
	if c := t.course.Load(); c != nil {
		return c.answers
	}
	return 0
}

// Done returns how much of the race is over, from 0 to 1: 0 before it has begun.
func (t *Tally) Done() float64 {
	c := t.course.Load()
	if c == nil {
		return 0
	}
	done := float64(t.Answered()) / float64(max(1, c.answers))
	if c.length > 0 {
		done = max(done, float64(time.Since(c.start))/float64(c.length))
	}
	return min(1, done)
}

// Answered returns how many orders are through.
func (t *Tally) Answered() int64 {
	return t.Ordered.Load() + t.Refused.Load() + t.Errors.Load()
}

func (t *Tally) add(r Record) {
	switch r.Outcome {
	case Ordered:
		t.Ordered.Add(1)
	case Refused:
		t.Refused.Add(1)
	case Failed, Unknown:
		t.Errors.Add(1)
	}
}

package buyers

import (
	"cmp"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Locks are how requests waited for the strategy's lock, held it and handed it
// over, by the shop's own account.
type Locks struct {
	Requests   int64       // that asked for a lock and had it
	Wait, Hold Percentiles // from asking to having; from having to giving it back, or the commit of those who answer before

	// HandOver is from the end of one holder's work to the moment at which the next
	// one, who was waiting, had the lock of the most wanted SKU. There are none if
	// nobody had to wait.
	HandOvers int64
	HandOver  Percentiles

	// Overlaps is how many had that lock before the holder before them had
	// committed: what a lock is there to prevent. A batch that one lease serves is one
	// holder.
	Overlaps int64
}

// mostSpans bounds how many holders of the most wanted lock are kept in mind:
// those that had it first.
const mostSpans = 20_000

// span is the time of one holder.
type span struct {
	asked, held, done time.Time
	wrote             bool
}

// locks collects them.
type locks struct {
	wait, hold *hdrhistogram.Histogram
	spans      []span
}

func (l *locks) add(one Traced, wanted bool) {
	if one.LockAsked.IsZero() || one.LockHeld.IsZero() {
		return
	}
	done := one.Read
	if !one.Committed.IsZero() {
		done = one.Committed
	}
	back := one.Released
	if back.IsZero() {
		back = done
	}
	if l.wait == nil {
		l.wait, l.hold = newWaits(), newWaits()
	}
	record(l.wait, one.LockHeld.Sub(one.LockAsked))
	record(l.hold, back.Sub(one.LockHeld))
	if !wanted || len(l.spans) >= mostSpans {
		return
	}
	l.spans = append(l.spans, span{one.LockAsked, one.LockHeld, done, one.Accepted})
}

// newWaits has room for all that can be, with three significant digits.
func newWaits() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, time.Hour.Microseconds(), 3)
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(0, d.Microseconds()), h.HighestTrackableValue())) // fails only above that
}

func percentiles(h *hdrhistogram.Histogram) Percentiles {
	if h == nil || h.TotalCount() == 0 {
		return Percentiles{}
	}
	at := func(p float64) time.Duration {
		return time.Duration(min(h.Max(), h.ValueAtPercentile(p))) * time.Microsecond
	}
	return Percentiles{P50: at(50), P90: at(90), P99: at(99), Max: time.Duration(h.Max()) * time.Microsecond}
}

// Locks returns what is known by now, nil if no request had a lock.
func (t *Traces) Locks() *Locks {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.locks.wait == nil {
		return nil
	}
	l := &Locks{Requests: t.locks.wait.TotalCount(), Wait: percentiles(t.locks.wait), Hold: percentiles(t.locks.hold)}
	l.follow(t.locks.spans)
	return l
}

// follow goes from holder to holder in the order in which they had the lock.
func (l *Locks) follow(spans []span) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.held.Compare(b.held), a.done.Compare(b.done)) })
	handOvers := newWaits()
	for i := 1; i < len(spans); i++ {
		before, next := spans[i-1], spans[i]
		if next.held.Equal(before.held) { // of the same batch
			continue
		}
		if before.wrote && next.held.Before(before.done) {
			l.Overlaps++
			continue
		}
		if next.asked.Before(before.done) && !next.held.Before(before.done) {
			record(handOvers, next.held.Sub(before.done))
		}
	}
	l.HandOvers, l.HandOver = handOvers.TotalCount(), percentiles(handOvers)
}

package page

import "example.com/shop/loadtest/report"

// window is the part of a timeline that is shown, in microseconds.
type window struct {
	from, to int64
}

// newWindow begins shortly before the first request works, however long it waited
// for the lock, and ends when all have read and those of interest have committed:
// the pair, or without one, all.
func newWindow(all []report.Request, pair []int) window {
	w := window{from: all[0].Read}
	for _, r := range all {
		works := r.Begun
		if r.LockHeld > 0 {
			works = r.LockHeld
		}
		w.from, w.to = min(w.from, works), max(w.to, r.Read)
		if len(pair) == 0 {
			w.to = max(w.to, r.Committed, r.Released)
		}
	}
	for _, i := range pair {
		if i >= 0 && i < len(all) {
			w.to = max(w.to, all[i].Committed, all[i].Released)
		}
	}
	margin := (w.to - w.from) / 20
	return window{from: max(0, w.from-margin), to: max(w.from+1, w.to+margin)}
}

// at is the place of a moment, at the edge if it is outside.
func (w window) at(us int64) percent {
	return share(min(max(us, w.from), w.to)-w.from, w.to-w.from)
}

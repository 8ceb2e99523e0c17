package history

import (
	"slices"
	"sync"
	"time"
)

// Lease is one lease, as its holder saw it.
type Lease struct {
	Key    string
	Holder string // whoever reads a failure should know who that is
	Fence  int64  // 0: the store mints none

	// Since is when the store was asked for the key, at the latest. A lease that
	// was handed over inside its process has the Since of the one before it.
	Since time.Time

	// Begin is when Acquire returned, End when Release was called or the lease's
	// context ended, whichever came first. A holder whose context may end late, as
	// that of a paused process does, takes the last instant at which it knew that
	// its lease went on. Begin again: it was never trusted.
	Begin, End time.Time
}

// trusted reports whether its holder ever could act under it.
func (e Lease) trusted() bool { return e.Begin.Before(e.End) }

// History is what was written down. It may be used by many goroutines at once.
type History struct {
	mu      sync.Mutex
	leases  []Lease
	forgot  []span
	rewound []span
}

// span is a time in which something happened, at an instant that need not be
// known.
type span struct{ from, to time.Time }

// Add writes a lease down.
func (h *History) Add(e Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases = append(h.leases, e)
}

// Forgot says that the store lost its memory of leases, or took them for older
// than they were.
func (h *History) Forgot(at time.Time) { h.ForgotBetween(at, at) }

// ForgotBetween is Forgot for one who knows only when it asked the store to
// forget, and when it was answered.
func (h *History) ForgotBetween(from, to time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgot = append(h.forgot, span{from, to})
}

// Rewound says that the store could not know that its fences became lower: it
// lost its memory, and its clock went back.
func (h *History) Rewound(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rewound = append(h.rewound, span{at, at})
}

// Leases returns all leases in the order in which they began.
func (h *History) Leases() []Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.leases)
	slices.SortStableFunc(all, func(a, b Lease) int { return a.Begin.Compare(b.Begin) })
	return all
}

// between reports whether one of the spans lies, in part, from one time to the
// other.
func between(spans []span, from, to time.Time) bool {
	return slices.ContainsFunc(spans, func(s span) bool {
		return !s.to.Before(from) && !s.from.After(to)
	})
}

// WasRewound reports whether Rewound named an instant from one time to the
// other.
func (h *History) WasRewound(from, to time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return between(h.rewound, from, to)
}

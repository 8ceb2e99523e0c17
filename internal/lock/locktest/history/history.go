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
	// context ended, whichever came first.
	Begin, End time.Time
}

// History is what was written down. It may be used by many goroutines at once.
type History struct {
	mu      sync.Mutex
	leases  []Lease
	forgot  []time.Time
	rewound []time.Time
}

// Add writes a lease down.
func (h *History) Add(e Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases = append(h.leases, e)
}

// Forgot says that the store lost its memory of leases, or took them for older
// than they were.
func (h *History) Forgot(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgot = append(h.forgot, at)
}

// Rewound says that the store could not know that its fences became lower: it
// lost its memory, and its clock went back.
func (h *History) Rewound(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rewound = append(h.rewound, at)
}

// Leases returns all leases in the order in which they began.
func (h *History) Leases() []Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.leases)
	slices.SortStableFunc(all, func(a, b Lease) int { return a.Begin.Compare(b.Begin) })
	return all
}

// between reports whether one of the instants lies from one time to the other.
func between(instants []time.Time, from, to time.Time) bool {
	return slices.ContainsFunc(instants, func(at time.Time) bool {
		return !at.Before(from) && !at.After(to)
	})
}

// WasRewound reports whether Rewound named an instant from one time to the
// other.
func (h *History) WasRewound(from, to time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return between(h.rewound, from, to)
}

package processes

import (
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/lock/locktest/history"
)

// patience bounds every wait. Nothing takes this long unless it hangs.
const patience = 20 * time.Second

// told is what the children have told so far.
type told struct {
	mu      sync.Mutex
	reports []report
	more    chan struct{} // closed when there is another
}

func newTold() *told { return &told{more: make(chan struct{})} }

func (w *told) add(r report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, r)
	close(w.more)
	w.more = make(chan struct{})
}

// since returns what was told after the first n reports, and what is closed when
// there is more.
func (w *told) since(n int) (reports []report, more <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.reports[n:]), w.more
}

// await returns the report that is looked for, and fails the test if nobody
// gives it.
func (w *told) await(t *testing.T, what string, find func(report) bool) report {
	t.Helper()
	limit := time.After(patience)
	for n := 0; ; {
		reports, more := w.since(n)
		if i := slices.IndexFunc(reports, find); i >= 0 {
			return reports[i]
		}
		n += len(reports)
		select {
		case <-more:
		case <-limit:
			t.Fatalf("%s: not told for %v", what, patience)
		}
	}
}

// history returns one of all leases. The last report of one whose holder was
// killed is that of its begin.
func (w *told) history() *history.History {
	type id struct {
		child string
		n     int64
	}
	last := make(map[id]report)
	reports, _ := w.since(0)
	for _, r := range reports {
		last[id{r.Child, r.ID}] = r
	}
	h := new(history.History)
	for _, r := range last {
		h.Add(r.Lease)
	}
	return h
}

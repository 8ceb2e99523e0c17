package locksim

import (
	"slices"
	"time"
)

// checkLeft: nobody holds anything any more. Where every message arrived that is
// so at once, elsewhere when the TTLs have passed.
func (w *world) checkLeft() {
	if w.plan.weather.faithful() {
		if holders, waiters := w.server.left(); len(holders)+len(waiters) > 0 {
			w.broke("store", "after all were closed, %v hold keys and %v stand in line", w.names(holders), w.names(waiters))
		}
		return
	}
	back := time.Duration(0) // how much later leases run out
	for _, f := range w.plan.faults {
		if f.kind == stepExpiry {
			back += f.step.Abs()
		}
	}
	time.Sleep(w.plan.longest*6/5 + reservation + back)
	if holders, _ := w.server.left(); len(holders) > 0 {
		w.broke("store", "a TTL after all were closed, %v hold keys", w.names(holders))
	}
}

// names are those of the log.
func (w *world) names(owners []string) (names []string) {
	for _, o := range owners {
		l := w.linkOf(o)
		names = append(names, l.name+l.alias(o))
	}
	return names
}

// checkHistory looks at all leases together.
func (w *world) checkHistory() {
	for _, broken := range w.history.Check() {
		w.broke(broken.After.Holder, "%v", broken)
	}
	lines := make(map[string][]*lease) // by process and key
	keys := make(map[string][]*lease)
	for _, e := range w.leases {
		line := e.link.name + " " + e.key
		lines[line] = append(lines[line], e)
		keys[e.key] = append(keys[e.key], e)
	}
	for _, leases := range lines {
		w.checkOrder(leases)
	}
	if w.plan.weather.calm() {
		for _, leases := range keys {
			w.checkWakeups(leases)
		}
	}
}

// checkOrder: "In one process callers stand in line, first come first served".
func (w *world) checkOrder(leases []*lease) {
	leases = slices.DeleteFunc(leases, func(e *lease) bool { return e.asked.IsZero() })
	slices.SortStableFunc(leases, func(a, b *lease) int { return a.begin.Compare(b.begin) })
	for i := 1; i < len(leases); i++ {
		if before, e := leases[i-1], leases[i]; e.asked.Before(before.asked) && e.begin.After(before.begin) {
			w.broke(before.who, "got %s before %s, who asked %v earlier", e.key, e.who, before.asked.Sub(e.asked))
		}
	}
}

// checkWakeups: "One who waits is woken by the release": in calm weather a key
// is not free for long while somebody waits for it.
func (w *world) checkWakeups(leases []*lease) {
	const most = 100 * time.Millisecond // a release, a call, a request; the same again for those who give up meanwhile
	slices.SortStableFunc(leases, func(a, b *lease) int { return a.begin.Compare(b.begin) })
	free := w.start
	for _, e := range leases {
		since := free
		if e.asked.After(since) {
			since = e.asked
		}
		if waited := e.begin.Sub(since); !e.asked.IsZero() && waited > most {
			w.broke(e.who, "waited until %v for %s, which was free for %v", e.begin.Sub(w.start), e.key, waited)
		}
		if e.freed.After(free) {
			free = e.freed
		}
	}
}

package locksim

import "time"

// unleash lets the plan's faults happen when they are due. That of a partition
// is in link.cut; here is its end.
func (w *world) unleash() {
	for _, f := range w.plan.faults {
		w.spawn(func() {
			time.Sleep(f.at)
			w.happen(f)
		})
	}
}

func (w *world) happen(f fault) {
	l, s := w.links[f.process], w.server
	switch f.kind {
	case cutBoth, cutThere, cutBack:
		w.note(l.name, "%s for %v", f.kind, f.length)
		time.Sleep(f.length)
		w.note(l.name, "connected again")
		if l.resubs {
			l.tellAll()
		}
	case crash:
		w.note(l.name, "crash")
		l.crash()
	case closing:
		w.close(f.process)
	case flush:
		w.note("store", "loses its memory")
		s.set(func() { clear(s.keys); clear(s.lines) })
		w.history.Forgot(time.Now())
	case stepFence:
		w.note("store", "fence clock steps by %v", f.step)
		w.stepsBack(f.step)
		s.set(func() { s.clocks.fence += f.step })
	case stepExpiry:
		w.note("store", "expiry clock steps by %v", f.step)
		s.set(func() { s.clocks.expiry += f.step })
		if f.step > 0 {
			w.history.Forgot(time.Now()) // leases run out early
		}
	}
}

func (w *world) stepsBack(step time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.back = w.back || step < 0
}

// close closes a Locker, once.
func (w *world) close(process int) {
	l := w.links[process]
	w.mu.Lock()
	again := !w.shut[l].IsZero()
	if !again {
		w.shut[l] = time.Now()
	}
	w.mu.Unlock()
	if again {
		return
	}
	w.note(l.name, "close")
	if err := w.lockers[process].Close(); err != nil {
		w.broke(l.name, "Close: %v", err)
	}
	w.note(l.name, "closed")
}

// closedAt returns when the process's Locker was closed; zero: it is open.
func (w *world) closedAt(l *link) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shut[l]
}

package lab

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/order/strategy"
)

// traces are the traces of all requests for which a step is taken: what the step does is recorded in each.
type traces []*Trace

// command records a command once the requests may send it, and returns how to add the answer. An error means that they
// may not. stops is whether it is a step by itself.
func (all traces) command(ctx context.Context, kind, text string, stops bool) (answer func(string), err error) {
	if stops {
		all.stop(ctx, kind+" "+text)
	}
	if all.died() {
		return nil, ErrDied
	}
	return all.add(kind, text, ""), nil
}

func (all traces) add(kind, text, answer string) (answered func(string)) {
	var each []func(string)
	for _, t := range all {
		if t.recorded() {
			each = append(each, t.add(kind, text, answer))
		}
	}
	return func(answer string) {
		for _, answered := range each {
			answered(answer)
		}
	}
}

// step adds a step that the requests have taken.
func (all traces) step(s step) {
	for _, t := range all {
		t.step(s)
	}
}

// asksFor notes which locks the requests ask for.
func (all traces) asksFor(keys []string, of strategy.Locker) {
	store, _ := of.(inspector)
	for _, t := range all {
		t.change(func() { t.asked, t.store, t.wants = keys, store, true })
	}
}

// letGo notes that the requests neither have the locks nor wait for them any more.
func (all traces) letGo() {
	for _, t := range all {
		t.change(func() { t.wants = false })
	}
}

// died reports whether the process of the requests has died.
func (all traces) died() bool { return slices.ContainsFunc(all, (*Trace).died) }

// die ends the requests as if their process had died.
func (all traces) die() {
	var stops []*stop
	for _, t := range all { // all of them, before any goes on
		t.mu.Lock()
		t.addLocked(KindStop, "dies", "")
		t.dead = true
		if t.stop != nil {
			stops = append(stops, t.stop)
		}
		t.mu.Unlock()
	}
	for _, s := range stops {
		s.end("")
	}
	for _, t := range all {
		t.cancel(ErrDied)
	}
}

// stop is a step before which requests stand still.
type stop struct {
	all  traces
	gate chan struct{} // closed to let them go on

	mu    sync.Mutex
	ended bool
}

// stop holds the requests that are stepped before their next step, which is the same for all of them.
func (all traces) stop(ctx context.Context, next string) {
	// In one order, so that no two steps wait for each other.
	all = slices.SortedFunc(slices.Values(all), func(a, b *Trace) int { return cmp.Compare(a.number, b.number) })
	for _, t := range all {
		select {
		case t.turn <- struct{}{}:
			defer func() { <-t.turn }()
		case <-ctx.Done():
			return
		}
	}
	s := &stop{gate: make(chan struct{})}
	var names []string
	for _, t := range all {
		t.mu.Lock()
		goesOn := t.inside || t.dead
		if t.stepped {
			s.all, names = append(s.all, t), append(names, t.name)
		}
		t.mu.Unlock()
		if goesOn {
			return
		}
	}
	if len(s.all) == 0 || ctx.Err() != nil {
		return
	}
	line := sourceLine()
	if line == "" {
		line, _ = ctx.Value(lineKey{}).(string)
	}
	s.begin(next, line, names)
	if slices.ContainsFunc(s.all, func(t *Trace) bool { return !t.stops() }) {
		s.end("") // it was resumed, or has died, just before
	}
	bound := time.NewTimer(Longest)
	defer bound.Stop()
	select {
	case <-s.gate:
	case <-ctx.Done():
		s.end("goes on: its context has ended")
	case <-bound.C:
		s.end("goes on by itself: no step for " + Longest.String())
	}
}

func (s *stop) begin(next, line string, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.all {
		t.change(func() {
			t.stop = s
			t.recording.State, t.recording.Next, t.recording.Line = Stopped, next, line
			if len(names) > 1 {
				t.recording.Shared = names
			}
		})
	}
}

// end lets the requests go on, unless they already do. It records why; empty for a move, which is recorded by what follows.
func (s *stop) end(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	for _, t := range s.all {
		if why != "" {
			t.add(KindStop, why, "")
		}
		t.change(func() {
			t.stop = nil
			t.recording.State, t.recording.Next, t.recording.Line, t.recording.Shared = Running, "", "", nil
			if t.ended {
				t.recording.State = Ended
			}
		})
	}
	close(s.gate)
}

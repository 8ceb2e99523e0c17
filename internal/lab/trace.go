package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Trace collects the steps of one request and, if it is recorded, all it does. It may be used by many goroutines at
// once.
type Trace struct {
	name string // of the recording; empty for a trace that is not recorded
	skus []string

	mu        sync.Mutex
	steps     []string // as in Header
	recording Recording
	stop      string        // "kind:word" before which to stop; empty: nowhere, or no more
	resumed   chan struct{} // closed by resume
	changed   chan struct{} // closed, and replaced, with each change
}

type traceKey struct{}

// traceIn returns the trace of the request whose context it is; nil for none.
func traceIn(ctx context.Context) *Trace {
	t, _ := ctx.Value(traceKey{}).(*Trace)
	return t
}

func (t *Trace) recorded() bool { return t.name != "" }

// Header returns the steps as Shop-Trace has them, in the order in which they were taken, their times in microseconds
// since 1970:
//
//	begun;at=1763715975000000, read;at=1763715975000320;sku=mug;units=100
func (t *Trace) Header() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.steps, ", ")
}

// End says that the request was answered. What it does afterwards is recorded, too.
func (t *Trace) End() {
	t.change(func() { t.recording.State, t.stop = Ended, "" })
}

// step adds a step that the request has taken, and holds it there if that is asked for.
func (t *Trace) step(ctx context.Context, s step) {
	header, units := fmt.Sprintf("%s;at=%d", s.name, time.Now().UnixMicro()), ""
	if s.sku != "" {
		header += ";sku=" + s.sku
	}
	if s.units != nil {
		header += fmt.Sprintf(";units=%d", *s.units)
		units = plural(*s.units, "unit")
	}
	t.mu.Lock()
	t.steps = append(t.steps, header)
	t.mu.Unlock()
	if t.recorded() {
		t.add(KindStep, s.name, units)
		t.stopAt(ctx, KindStep, s.name, "at")
	}
}

// command records a command, once the request may send it. It returns how to add the answer.
func (t *Trace) command(ctx context.Context, kind, text string) (answer func(string)) {
	word, _, _ := strings.Cut(text, " ")
	t.stopAt(ctx, kind, word, "before")
	return t.add(kind, text, "")
}

func (t *Trace) add(kind, text, answer string) (answered func(string)) {
	i := -1
	t.change(func() {
		if len(t.recording.Events) < maxEvents {
			i = len(t.recording.Events)
			t.recording.Events = append(t.recording.Events, Event{time.Now().UnixMicro(), kind, text, answer})
		}
	})
	return func(answer string) {
		if i >= 0 {
			t.change(func() { t.recording.Events[i].Answer = answer })
		}
	}
}

// stopAt holds the request here if that is where it is to stop. A request stops once.
func (t *Trace) stopAt(ctx context.Context, kind, word, preposition string) {
	t.mu.Lock()
	stops := t.stop == kind+":"+word
	if stops {
		t.stop = ""
	}
	t.mu.Unlock()
	if !stops {
		return
	}
	t.become(Stopped, "stopped "+preposition+" "+word)
	bound := time.NewTimer(Longest)
	defer bound.Stop()
	how := "goes on"
	select {
	case <-t.resumed:
	case <-ctx.Done():
		how = "goes on: its context has ended"
	case <-bound.C:
		how = "goes on by itself: not released for " + Longest.String()
	}
	t.become(Running, how)
}

// become changes the state of a request, unless it has ended, and records why.
func (t *Trace) become(state, why string) {
	t.add(KindStop, why, "")
	t.change(func() {
		if t.recording.State != Ended {
			t.recording.State = state
		}
	})
}

// resume ends a stop, also one that has not come yet.
func (t *Trace) resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop = ""
	select {
	case <-t.resumed:
	default:
		close(t.resumed)
	}
}

func (t *Trace) change(what func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what()
	t.recording.Version++
	close(t.changed)
	t.changed = make(chan struct{})
}

// look returns what there is, and what is closed with the next change.
func (t *Trace) look() (Recording, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.recording
	now.Events = slices.Clone(now.Events)
	return now, t.changed
}

func plural(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

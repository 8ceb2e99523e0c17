package lab

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Names of the steps of a purchase, in the order in which a request takes them. It takes the first always, and some
// more than once if it tries again.
const (
	StepBegun     = "begun"
	StepLockAsked = "lock-asked" // by strategies with a lock alone, as StepLockHeld and StepReleased
	StepLockHeld  = "lock-held"
	StepRead      = "read"    // the level of a SKU is known, in Step.Units; not where a lane sells by a snapshot
	StepWriting   = "writing" // the transaction begins
	StepWritten   = "written" // units were taken; see Step.Units
	StepCommitted = "committed"
	StepReleased  = "released" // not by lanes, which answer before they give the lease back
)

// Step is a moment in the life of a request.
type Step struct {
	Name string
	At   time.Time // by the clock of this process
	SKU  string    // of StepRead and StepWritten, which there are of each line

	// Units are those that were read as available, or, where the strategy writes back what it computed, those that were
	// written. Otherwise, Known is false.
	Units int64
	Known bool
}

// Trace collects the steps of one request and, if it is recorded, all it does. It may be used by many goroutines at
// once.
type Trace struct {
	request Request

	mu        sync.Mutex
	steps     []Step
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

// recordedIn is traceIn for recorded traces alone.
func recordedIn(ctx context.Context) *Trace {
	if t := traceIn(ctx); t != nil && t.recorded() {
		return t
	}
	return nil
}

func (t *Trace) recorded() bool { return t.request.Name != "" }

// Steps returns those that were taken so far.
func (t *Trace) Steps() []Step {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.steps)
}

// Header writes the steps as Shop-Trace has them, in the order in which they were taken, their times in microseconds
// since 1970:
//
//	begun;at=1763715975000000, read;at=1763715975000320;sku=mug;units=100
func (t *Trace) Header() string {
	steps := t.Steps()
	parts := make([]string, len(steps))
	for i, s := range steps {
		parts[i] = s.Name + ";at=" + strconv.FormatInt(s.At.UnixMicro(), 10)
		if s.SKU != "" {
			parts[i] += ";sku=" + s.SKU
		}
		if s.Known {
			parts[i] += ";units=" + strconv.FormatInt(s.Units, 10)
		}
	}
	return strings.Join(parts, ", ")
}

// End says that the request was answered. What it does afterwards is recorded, too.
func (t *Trace) End() {
	t.change(func() { t.recording.State, t.stop = Ended, "" })
}

// step adds a step that the request has taken, and holds it there if that is asked for.
func (t *Trace) step(ctx context.Context, s Step) {
	s.At = time.Now()
	t.mu.Lock()
	t.steps = append(t.steps, s)
	t.mu.Unlock()
	if !t.recorded() {
		return
	}
	units := ""
	if s.Known {
		units = plural(s.Units, "unit")
	}
	stops := t.stopsAt(KindStep, s.Name)
	t.add(KindStep, s.Name, units)
	if stops {
		t.hold(ctx, "at "+s.Name)
	}
}

// command records a command, once the request may send it. It returns how to add the answer.
func (t *Trace) command(ctx context.Context, kind, text string) (answer func(string)) {
	if t.stopsAt(kind, text) {
		word, _, _ := strings.Cut(text, " ")
		t.hold(ctx, "before "+word)
	}
	return t.add(kind, text, "")
}

func (t *Trace) add(kind, text, answer string) (answered func(string)) {
	i := -1
	t.change(func() {
		if len(t.recording.Events) < maxEvents {
			i = len(t.recording.Events)
			t.recording.Events = append(t.recording.Events, Event{At: time.Now(), Kind: kind, Text: text, Answer: answer})
		}
	})
	return func(answer string) {
		if i >= 0 {
			t.change(func() { t.recording.Events[i].Answer = answer })
		}
	}
}

// stopsAt decides whether to stop here. A request stops once.
func (t *Trace) stopsAt(kind, text string) bool {
	word, _, _ := strings.Cut(text, " ")
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop == "" || t.stop != kind+":"+word {
		return false
	}
	t.stop = ""
	return true
}

// hold is a stop.
func (t *Trace) hold(ctx context.Context, where string) {
	t.add(KindStop, "stopped "+where, "")
	t.become(Stopped)
	bound := time.NewTimer(Longest)
	defer bound.Stop()
	how := "goes on"
	select {
	case <-t.resumed:
	case <-ctx.Done():
		how = "goes on: its context has ended"
	case <-bound.C:
		how = "goes on by itself: nobody let it for " + Longest.String()
	}
	t.become(Running)
	t.add(KindStop, how, "")
}

// become changes the state of a request that has not ended.
func (t *Trace) become(state string) {
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

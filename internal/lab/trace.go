package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize/english"

	"example.com/shop/internal/lock"
)

// Trace collects the steps of one request and, if it is recorded, all it does. Many goroutines may use it at once.
type Trace struct {
	name   string // of the recording; empty for a trace that is not recorded
	skus   []string
	cancel context.CancelCauseFunc // of the request

	stepped atomic.Bool // it stops before each step
	dead    atomic.Bool // it has died

	mu        sync.Mutex
	steps     []Taken       // the latest of each name and SKU
	recording Recording     // but for its state
	inside    bool          // of a step that has several commands, which do not stop
	ended     bool          // it was answered
	gate      chan struct{} // closed to let it go on; nil while it does not stand still
	changed   chan struct{} // closed, and replaced, with each change

	turn  chan struct{} // has one element while the request stops: it may work in two goroutines
	asked asked         // the latest thing that the request has asked for
}

func (t *Trace) recorded() bool { return t.name != "" }

// In returns ctx for the work of the request.
func (t *Trace) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, workKey{}, work{of: traces{t}})
}

// work says for which requests a step is taken.
type work struct {
	of     traces
	shared bool // by several requests, or by none
}

type workKey struct{}

func workIn(ctx context.Context) work {
	w, _ := ctx.Value(workKey{}).(work)
	return w
}

// Share is for batch.Config: a step for several requests is in the trace of each request.
func Share(ctx context.Context, requests []context.Context) context.Context {
	w := work{shared: true}
	for _, request := range requests {
		w.of = append(w.of, workIn(request).of...)
	}
	return context.WithValue(ctx, workKey{}, w)
}

// Header returns the steps as Shop-Trace has them: JSON, in the order in which they were taken.
func (t *Trace) Header() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	steps, _ := json.Marshal(t.steps) // it never fails
	return string(steps)
}

// End says that the request was answered. What it does afterwards is also recorded, and stepped.
func (t *Trace) End() {
	t.change(func() { t.ended = true })
	t.cancel(nil)
}

func (t *Trace) step(s Taken) {
	s.At = time.Now().UnixMicro()
	t.mu.Lock()
	t.steps = slices.DeleteFunc(t.steps, func(earlier Taken) bool { return earlier.Step == s.Step && earlier.SKU == s.SKU })
	t.steps = append(t.steps, s)
	t.mu.Unlock()
	if t.recorded() {
		units := ""
		if s.Units != nil {
			units = english.Plural(int(*s.Units), "unit", "")
		}
		t.add(KindStep, s.Step, units)
	}
}

// add adds an event, and returns a function that adds the event's answer.
func (t *Trace) add(kind, text, answer string) (answered func(string)) {
	i := 0
	t.change(func() {
		i = len(t.recording.Events)
		t.recording.Events = append(t.recording.Events, Event{time.Now().UnixMicro(), kind, text, answer})
	})
	return func(answer string) {
		t.change(func() { t.recording.Events[i].Answer = answer })
	}
}

// stop holds a request that is stepped before its next step.
func (t *Trace) stop(ctx context.Context, next string) {
	if !t.stepped.Load() { // as in a race
		return
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return
	}
	line := sourceLine()
	if line == "" {
		line, _ = ctx.Value(lineKey{}).(string)
	}
	var gate chan struct{}
	t.change(func() {
		if t.stepped.Load() && !t.inside && !t.dead.Load() && ctx.Err() == nil {
			gate = make(chan struct{})
			t.gate, t.recording.Next, t.recording.Line = gate, next, line
		}
	})
	if gate == nil {
		return
	}
	select {
	case <-gate:
	case <-ctx.Done():
		t.goOn("goes on: its context has ended")
	case <-time.After(Longest):
		t.goOn("goes on by itself: no step for " + Longest.String())
	}
}

// goOn lets the request go on if it stands still, and records why; empty for a move, which is recorded by what follows.
func (t *Trace) goOn(why string) (stood bool) {
	t.change(func() {
		if stood = t.gate != nil; !stood {
			return
		}
		close(t.gate)
		t.gate, t.recording.Next, t.recording.Line = nil, "", ""
		if why != "" {
			t.recording.Events = append(t.recording.Events, Event{time.Now().UnixMicro(), KindStop, why, ""})
		}
	})
	return stood
}

// asked is what a request has asked for: locks, units of counts, or a hold. A function is nil if it cannot do that.
type asked struct {
	event  string                                         // the KindStop when it ends: RunsOut, CountLost or HoldEnds
	end    func(ctx context.Context) (bool, error)        // whether there was anything that ends
	holder func(ctx context.Context) (lock.Holder, error) // of the first lock
}

// askedLast returns what the request has asked for last, and a context for commands that are not recorded.
func (t *Trace) askedLast(ctx context.Context) (context.Context, asked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Share(ctx, nil), t.asked
}

func (t *Trace) expire(ctx context.Context) error {
	ctx, last := t.askedLast(ctx)
	if last.end == nil {
		return fmt.Errorf("%w: the request of %s has asked for no lock that expires", ErrInvalid, t.name)
	}
	ended, err := last.end(ctx)
	if ended {
		t.add(KindStop, last.event, "")
	}
	return err
}

// change makes a change, and tells the callers of Look.
func (t *Trace) change(what func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what()
	t.recording.Version++
	close(t.changed)
	t.changed = make(chan struct{})
}

// look returns the recording, and a channel that is closed with the next change.
func (t *Trace) look() (Recording, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.recording
	now.Events = slices.Clone(now.Events)
	switch {
	case t.gate != nil:
		now.State = Stopped
	case t.ended:
		now.State = Ended
	default:
		now.State = Running
	}
	return now, t.changed
}

// traces are the traces of all requests for which a step is taken: what the step does is recorded in each.
type traces []*Trace

// command records a command once the requests may send it, and returns a function that adds its answer. An error means
// that they may not send it. stops says that the command is a step by itself.
func (all traces) command(ctx context.Context, kind, text string, stops bool) (answer func(string), err error) {
	if stops {
		all.stop(ctx, kind+" "+text)
	}
	if all.died() {
		return nil, ErrDied
	}
	return all.add(kind, text, ""), nil
}

func (all traces) stop(ctx context.Context, next string) {
	for _, t := range all {
		t.stop(ctx, next)
	}
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

// asksFor notes what the requests ask for.
func (all traces) asksFor(what asked) {
	for _, t := range all {
		t.change(func() { t.asked = what })
	}
}

func (all traces) died() bool {
	return slices.ContainsFunc(all, func(t *Trace) bool { return t.dead.Load() })
}

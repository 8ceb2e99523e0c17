package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	steps     []step        // the latest of each name and SKU
	recording Recording     // but for its state
	inside    bool          // of a step that has several commands, which do not stop
	ended     bool          // it was answered
	gate      chan struct{} // closed to let it go on; nil while it does not stand still
	changed   chan struct{} // closed, and replaced, with each change

	turn  chan struct{} // has one element while the request stops: it may work in two goroutines
	asked asked         // what it has asked for last
}

func (t *Trace) recorded() bool { return t.name != "" }

// In returns ctx for the work of the request.
func (t *Trace) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, workKey{}, work{of: func() traces { return traces{t} }})
}

// work says for which requests a step is taken.
type work struct {
	of     func() traces
	shared bool // by several requests, or by none
}

type workKey struct{}

func workIn(ctx context.Context) work {
	w, known := ctx.Value(workKey{}).(work)
	if !known {
		w.of = func() traces { return nil }
	}
	return w
}

// Share is a batch.Config's: what is done for several requests is in the trace of each.
func Share(ctx context.Context, requests []context.Context) context.Context {
	return context.WithValue(ctx, workKey{}, work{shared: true, of: func() (all traces) {
		for _, request := range requests {
			all = append(all, workIn(request).of()...)
		}
		return all
	}})
}

// Header returns the steps as Shop-Trace has them, in the order in which they were taken, their times in microseconds
// since 1970:
//
//	begun;at=1763715975000000, read;at=1763715975000320;sku=mug;units=100
func (t *Trace) Header() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]string, len(t.steps))
	for i, s := range t.steps {
		all[i] = fmt.Sprintf("%s;at=%d", s.name, s.at)
		if s.sku != "" {
			all[i] += ";sku=" + s.sku
		}
		if s.units != nil {
			all[i] += fmt.Sprintf(";units=%d", *s.units)
		}
	}
	return strings.Join(all, ", ")
}

// End says that the request was answered. What it does afterwards is also recorded, and stepped.
func (t *Trace) End() {
	t.change(func() { t.ended = true })
	t.cancel(nil)
}

func (t *Trace) step(s step) {
	s.at = time.Now().UnixMicro()
	t.mu.Lock()
	t.steps = slices.DeleteFunc(t.steps, func(earlier step) bool { return earlier.name == s.name && earlier.sku == s.sku })
	t.steps = append(t.steps, s)
	t.mu.Unlock()
	if t.recorded() {
		units := ""
		if s.units != nil {
			units = plural(*s.units, "unit")
		}
		t.add(KindStep, s.name, units)
	}
}

// add adds an event, and returns how to add its answer.
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

// asked is what a request has asked for: locks, units of counts, or a hold.
type asked struct {
	keys  []string
	store inspector // of the keys; nil if they do not end by time
	event string    // the KindStop when they end: RunsOut, CountLost or HoldEnds
}

// inspector is a lock whose store names the holder of a key, and which can be taken from its holder.
type inspector interface {
	Holder(ctx context.Context, key string) (lock.Holder, error)
	ForceRelease(ctx context.Context, key string) (lock.Holder, error)
}

// locks returns the locks that the request has asked for last, and a context for commands that are not recorded.
func (t *Trace) locks(ctx context.Context) (context.Context, asked, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked.store == nil {
		return nil, asked{}, fmt.Errorf("%w: the request of %s has asked for no lock that expires", ErrInvalid, t.name)
	}
	return Share(ctx, nil), t.asked, nil
}

func (t *Trace) expire(ctx context.Context) error {
	ctx, locks, err := t.locks(ctx)
	if err != nil {
		return err
	}
	ended := false
	for _, key := range locks.keys {
		_, err := locks.store.ForceRelease(ctx, key)
		if err != nil && !errors.Is(err, lock.ErrLost) { // it was released meanwhile, or does not end by time
			return err
		}
		ended = ended || err == nil
	}
	if ended {
		t.add(KindStop, locks.event, "")
	}
	return nil
}

// change makes a change, which those who look learn of.
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

// asksFor notes what the requests ask for, of whom, and which event it is when that ends.
func (all traces) asksFor(keys []string, of any, event string) {
	store, _ := of.(inspector)
	for _, t := range all {
		t.change(func() { t.asked = asked{keys, store, event} })
	}
}

func (all traces) died() bool {
	return slices.ContainsFunc(all, func(t *Trace) bool { return t.dead.Load() })
}

func plural(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

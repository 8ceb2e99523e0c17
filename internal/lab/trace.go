package lab

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
)

// Trace collects the steps of one request and, if it is recorded, all it does. It may be used by many goroutines at
// once.
type Trace struct {
	name   string // of the recording; empty for a trace that is not recorded
	skus   []string
	cancel context.CancelCauseFunc // of the request

	mu        sync.Mutex
	steps     []step // the latest of each name and SKU
	recording Recording
	stepped   bool          // it stops before each step
	inside    bool          // of a step that has several commands, which do not stop
	dead      bool          // it has died
	ended     bool          // it was answered
	gate      chan struct{} // closed to let it go on; nil while it does not stand still
	changed   chan struct{} // closed, and replaced, with each change

	turn  chan struct{} // has one element while the request stops: it may work in two goroutines
	asked []string      // keys of the locks that it has asked for last
	store inspector     // of these; nil if they do not end by time
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

// End says that the request was answered. What it does afterwards is recorded, and stepped, too.
func (t *Trace) End() {
	t.change(func() {
		t.ended = true
		if t.gate == nil {
			t.recording.State = Ended
		}
	})
	t.cancel(nil)
}

// step adds a step that the request has taken.
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

// command records a command once the request may send it, and returns how to add the answer. An error means that it may
// not. stops is whether it is a step by itself.
func (t *Trace) command(ctx context.Context, kind, text string, stops bool) (answer func(string), err error) {
	if stops {
		t.stop(ctx, kind+" "+text)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead {
		return nil, ErrDied
	}
	return t.addLocked(kind, text, ""), nil
}

func (t *Trace) add(kind, text, answer string) (answered func(string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.addLocked(kind, text, answer)
}

func (t *Trace) addLocked(kind, text, answer string) (answered func(string)) {
	i := -1
	t.changeLocked(func() {
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

// stop holds a request that is stepped before its next step.
func (t *Trace) stop(ctx context.Context, next string) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return
	}
	t.mu.Lock()
	if !t.stepped || t.inside || t.dead || ctx.Err() != nil {
		t.mu.Unlock()
		return
	}
	line := sourceLine()
	if line == "" {
		line, _ = ctx.Value(lineKey{}).(string)
	}
	gate := make(chan struct{})
	t.gate = gate
	t.changeLocked(func() { t.recording.State, t.recording.Next, t.recording.Line = Stopped, next, line })
	t.mu.Unlock()
	bound := time.NewTimer(Longest)
	defer bound.Stop()
	why := ""
	select {
	case <-gate:
	case <-ctx.Done():
		why = "goes on: its context has ended"
	case <-bound.C:
		why = "goes on by itself: no step for " + Longest.String()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gate == gate { // no move has ended the stop
		t.addLocked(KindStop, why, "")
		t.openLocked()
	}
}

// sourceLine returns where the calling goroutine is in the source of a strategy, a lane or a wrong lock, such as
// internal/order/strategy/none.go:18; empty if it is in none. In what all strategies share, it returns the strategy's
// call instead.
func sourceLine() string {
	callers := make([]uintptr, 64) // deep enough for gorm between a strategy and its statement
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for {
		frame, more := frames.Next()
		if at := sourceFile.FindString(frame.File); at != "" && at != sharedFile {
			return fmt.Sprintf("%s:%d", at, frame.Line)
		}
		if !more {
			return ""
		}
	}
}

// lineKey is of the line that began a transaction.
type lineKey struct{}

const sharedFile = "internal/order/strategy/shop.go"

// sourceFile matches from the module's folder on: what is before it depends on where and how the program was built.
var sourceFile = regexp.MustCompile(`internal/(order/(strategy|lane)/\w+|lab/wronglocks)\.go$`)

func (t *Trace) takeStep() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gate == nil {
		return fmt.Errorf("%w: the request of %s has not stopped", ErrInvalid, t.name)
	}
	t.openLocked()
	return nil
}

// resume ends a stop, also one that has not come yet.
func (t *Trace) resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stepped = false
	t.openLocked()
}

func (t *Trace) die() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addLocked(KindStop, "dies", "")
	t.dead = true
	t.openLocked()
	t.cancel(ErrDied)
}

// openLocked lets the request go on if it stands still.
func (t *Trace) openLocked() {
	if t.gate == nil {
		return
	}
	close(t.gate)
	t.gate = nil
	t.changeLocked(func() {
		t.recording.State, t.recording.Next, t.recording.Line = Running, "", ""
		if t.ended {
			t.recording.State = Ended
		}
	})
}

func (t *Trace) died() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dead
}

// asksFor notes which locks the request asks for.
func (t *Trace) asksFor(keys []string, of strategy.Locker) {
	store, _ := of.(inspector)
	t.change(func() { t.asked, t.store = keys, store })
}

// inspector is a lock whose store names the holder of a key, and which can be taken from its holder.
type inspector interface {
	Holder(ctx context.Context, key string) (lock.Holder, error)
	ForceRelease(ctx context.Context, key string) (lock.Holder, error)
}

// locks returns the locks that the request has asked for last, and a context for commands that are not recorded.
func (t *Trace) locks(ctx context.Context) (context.Context, inspector, []string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.store == nil {
		return nil, nil, nil, fmt.Errorf("%w: the request of %s has asked for no lock that expires", ErrInvalid, t.name)
	}
	return order.WithRequests(ctx, func() []context.Context { return nil }), t.store, t.asked, nil
}

// expire ends the locks that the request has asked for.
func (t *Trace) expire(ctx context.Context) error {
	ctx, store, keys, err := t.locks(ctx)
	if err != nil {
		return err
	}
	ended := false
	for _, key := range keys {
		switch _, err := store.ForceRelease(ctx, key); {
		case err == nil:
			ended = true
		case !errors.Is(err, lock.ErrLost): // it was released meanwhile, or does not end by time
			return err
		}
	}
	if ended {
		t.add(KindStop, "the lock runs out", "")
	}
	return nil
}

// holder returns who has the lock that the request has asked for last, by the lock's store.
func (t *Trace) holder(ctx context.Context) (LockState, error) {
	ctx, store, keys, err := t.locks(ctx)
	if err != nil {
		return LockState{}, err
	}
	h, err := store.Holder(ctx, keys[0])
	if errors.Is(err, errors.ErrUnsupported) {
		err = fmt.Errorf("%w: its store does not name holders", ErrInvalid)
	}
	return LockState{short(h.Owner[strings.LastIndex(h.Owner, ":")+1:]), h.Remaining.Milliseconds()}, err
}

func (t *Trace) change(what func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changeLocked(what)
}

func (t *Trace) changeLocked(what func()) {
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

package tape

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kinds of events.
const (
	Step  = "step"  // of order.Trace, and what the lock's store said
	Redis = "redis" // a command
	SQL   = "sql"   // a statement
	Stop  = "stop"  // the request stood still, or goes on
)

// Longest is how long a stop lasts that nobody ends.
const Longest = 30 * time.Second

// maxEvents bounds a tape.
const maxEvents = 2000

// Event is something that a request did.
type Event struct {
	At     time.Time
	Kind   string
	Text   string // its first word is the name of the step, command or statement
	Answer string // empty while there is none
}

// States of a request.
const (
	Running = "running"
	Stopped = "stopped"
	Ended   = "ended"
)

// Seen is what a tape has by now.
type Seen struct {
	State   string
	Version int // higher with each change
	Events  []Event
}

// Tape records one request. It may be used by many goroutines at once.
type Tape struct {
	name string
	skus []string

	mu      sync.Mutex
	seen    Seen
	stop    string        // "kind:word" ahead of which to stop; empty: nowhere, or no more
	resumed chan struct{} // closed by resume
	changed chan struct{} // closed, and replaced, with each change
}

func newTape(r Request) *Tape {
	return &Tape{
		name: r.Name, skus: r.SKUs, stop: r.Stop,
		seen:    Seen{State: Running},
		resumed: make(chan struct{}),
		changed: make(chan struct{}),
	}
}

// Note records an event, once the request may go that far. It returns how to add
// the answer.
func (t *Tape) Note(ctx context.Context, kind, text string) (answer func(string)) {
	if t.stopsAt(kind, text) {
		word, _, _ := strings.Cut(text, " ")
		t.hold(ctx, "before "+word)
	}
	return t.add(kind, text, "")
}

// Step records a step that the request has taken, and holds it there if that is
// asked for.
func (t *Tape) Step(ctx context.Context, name, detail string) {
	stops := t.stopsAt(Step, name)
	t.add(Step, name, detail)
	if stops {
		t.hold(ctx, "at "+name)
	}
}

// End says that the request was answered.
func (t *Tape) End() {
	t.change(func() { t.seen.State, t.stop = Ended, "" })
}

func (t *Tape) add(kind, text, said string) (answer func(string)) {
	i := -1
	t.change(func() {
		if len(t.seen.Events) < maxEvents {
			i = len(t.seen.Events)
			t.seen.Events = append(t.seen.Events, Event{At: time.Now(), Kind: kind, Text: text, Answer: said})
		}
	})
	return func(said string) {
		if i >= 0 {
			t.change(func() { t.seen.Events[i].Answer = said })
		}
	}
}

// stopsAt reports whether to stop here. A request stops once.
func (t *Tape) stopsAt(kind, text string) bool {
	word, _, _ := strings.Cut(text, " ")
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop == "" || t.stop != kind+":"+word {
		return false
	}
	t.stop = ""
	return true
}

func (t *Tape) hold(ctx context.Context, where string) {
	t.add(Stop, "stopped "+where, "")
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
	t.add(Stop, how, "")
}

// become changes the state of a request that has not ended: what it does after its
// answer is recorded, too.
func (t *Tape) become(state string) {
	t.change(func() {
		if t.seen.State != Ended {
			t.seen.State = state
		}
	})
}

// resume ends a stop, also one that has not come yet.
func (t *Tape) resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop = ""
	select {
	case <-t.resumed:
	default:
		close(t.resumed)
	}
}

func (t *Tape) change(what func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what()
	t.seen.Version++
	close(t.changed)
	t.changed = make(chan struct{})
}

// look returns what there is, and what is closed with the next change.
func (t *Tape) look() (Seen, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := t.seen
	seen.Events = slices.Clone(seen.Events)
	return seen, t.changed
}

type tapeKey struct{}

// Of returns the tape of the request whose context it is; nil for none.
func Of(ctx context.Context) *Tape {
	t, _ := ctx.Value(tapeKey{}).(*Tape)
	return t
}

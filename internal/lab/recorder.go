package lab

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order/strategy"
)

var (
	// ErrInvalid means that the name of a recording is taken, or that its request cannot make a move.
	ErrInvalid = errors.New("invalid recording")

	// ErrDied is the error of every command of a request that has died.
	ErrDied = errors.New("the request has died, as if with its process")

	// ErrNotFound means that there is no recording with this name, or no longer.
	ErrNotFound = errors.New("no such recording")
)

// Kinds of events.
const (
	KindStep      = "step"  // of a purchase, or what the lock's store answered
	KindRedis     = "redis" // a command
	KindSQL       = "sql"   // a statement
	KindStop      = "stop"  // the request stood still, or goes on
	KindZooKeeper = "zookeeper"
)

// States of a request.
const (
	Running = "running"
	Stopped = "stopped"
	Ended   = "ended"
)

// Move is what can be done to a recorded request.
type Move string

// Moves.
const (
	Step   Move = "step"   // let it take the step that it has stopped before
	Resume Move = "resume" // let it go on without further stops
	Die    Move = "die"    // let it end as if its process had died, and with it all other recorded requests that run there
	Expire Move = "expire" // let the locks that it has asked for last run out, whoever holds them; the holder does not notice
)

// KindStops of Expire: of a lock, of a count in Redis, which is deleted as by FLUSHALL, and of an order, which is due.
const (
	RunsOut   = "the lock runs out"
	CountLost = "the count is lost"
	HoldEnds  = "the hold ends"
)

const (
	// Longest is how long a stop lasts that no Move ends; less by the limit of a request, a transaction
	// (30 s) or a COMMIT (10 s).
	Longest = 10 * time.Minute

	maxRecordings = 64 // the oldest goes first
)

// Event is something that a request did.
type Event struct {
	At     int64  `json:"at"` // microseconds since 1970, by the clock of this process
	Kind   string `json:"kind"`
	Text   string `json:"text"`             // its first word is the name of the step, command or statement
	Answer string `json:"answer,omitempty"` // empty while there is none
}

// Recording is what a request has done so far.
type Recording struct {
	State   string  `json:"state"`
	Next    string  `json:"next,omitempty"` // the step that it has stopped before
	Line    string  `json:"line,omitempty"` // of the source, which takes this step; empty if unknown
	Version int     `json:"version"`        // higher with each change
	Events  []Event `json:"events"`
}

// LockState is what a lock's store has of a lock.
type LockState struct {
	Owner string `json:"owner"`  // as in the commands of a recording; empty if the lock is free
	TTL   int64  `json:"ttl_ms"` // what is left; 0 if it has no end
}

// Recorder keeps the latest recordings of a shop, at first none. It may be used by many goroutines at once.
type Recorder struct {
	used atomic.Bool // there was a recording; nothing is looked for before

	mu       sync.Mutex
	recorded []*Trace // the latest last
}

// Begin begins the trace of a request about these SKUs, and returns the request's context, which ends if it dies. With
// a name, the request is recorded, and stops before each step that another request can notice. Trace.In is for what is
// to be traced; call End when the request has its answer. The error is an ErrInvalid.
func (r *Recorder) Begin(ctx context.Context, name string, skus []string) (context.Context, *Trace, error) {
	t := &Trace{
		name: name, skus: skus, changed: make(chan struct{}), turn: make(chan struct{}, 1),
		recording: Recording{Events: []Event{}},
	}
	t.stepped.Store(t.recorded())
	if t.recorded() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if slices.ContainsFunc(r.recorded, func(other *Trace) bool { return other.name == t.name }) {
			return nil, nil, fmt.Errorf("%w: there is a recording called %.80q already", ErrInvalid, t.name)
		}
		r.recorded = append(r.recorded, t)
		r.recorded = r.recorded[max(0, len(r.recorded)-maxRecordings):]
		r.used.Store(true)
	}
	ctx, t.cancel = context.WithCancelCause(ctx)
	t.step(Taken{Step: stepBegun})
	return ctx, t, nil
}

// Look returns a recording, as soon as its version is higher than the one that was seen before, or as
// it is when ctx ends.
func (r *Recorder) Look(ctx context.Context, name string, seen int) (Recording, error) {
	t, err := r.get(name)
	if err != nil {
		return Recording{}, err
	}
	for {
		now, changed := t.look()
		if now.Version > seen {
			return now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return now, nil
		}
	}
}

// Do makes a move with a request. The error is an ErrNotFound, an ErrInvalid, or an error of the lock's store.
func (r *Recorder) Do(ctx context.Context, move Move, name string) error {
	t, err := r.get(name)
	if err != nil {
		return err
	}
	switch move {
	case Step:
		if !t.goOn("") {
			return fmt.Errorf("%w: the request of %s has not stopped", ErrInvalid, name)
		}
	case Resume:
		t.stepped.Store(false)
		t.goOn("")
	case Die:
		r.die(t)
	case Expire:
		return t.expire(ctx)
	default:
		return fmt.Errorf("%w: move %.80q: want step, resume, die or expire", ErrInvalid, move)
	}
	return nil
}

// die ends a request, and all others that run in its process, as if the process had died.
func (r *Recorder) die(t *Trace) {
	r.mu.Lock()
	all := slices.DeleteFunc(slices.Clone(r.recorded), func(other *Trace) bool {
		now, _ := other.look()
		return other != t && (other.dead.Load() || now.State == Ended)
	})
	r.mu.Unlock()
	for _, t := range all { // all of them, before any goes on
		t.dead.Store(true)
		t.add(KindStop, "dies", "")
	}
	for _, t := range all {
		t.goOn("")
		t.cancel(ErrDied)
	}
}

// Holder returns the state of the lock that a request has asked for last. The error is an ErrNotFound, an ErrInvalid if
// the request has asked for no lock or the store does not know the lock, or an error of the store.
func (r *Recorder) Holder(ctx context.Context, name string) (LockState, error) {
	t, err := r.get(name)
	if err != nil {
		return LockState{}, err
	}
	ctx, last := t.askedLast(ctx)
	if last.holder == nil {
		return LockState{}, fmt.Errorf("%w: the request of %s has asked for no lock that has a holder", ErrInvalid, name)
	}
	h, err := last.holder(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		err = fmt.Errorf("%w: its store does not name holders", ErrInvalid)
	}
	return LockState{short(h.Owner[strings.LastIndex(h.Owner, ":")+1:]), h.Remaining.Milliseconds()}, err
}

func (r *Recorder) get(name string) (*Trace, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.recorded, func(t *Trace) bool { return t.name == name })
	if i < 0 {
		return nil, fmt.Errorf("%w: %.80q", ErrNotFound, name)
	}
	return r.recorded[i], nil
}

// of returns the traces that a command belongs to, if one of them is recorded: the traces in its
// context, or else the latest recorded trace about a SKU that one of its arguments names; nil for none.
// own means that they come from the context.
func (r *Recorder) of(ctx context.Context, arguments ...any) (_ traces, own bool) {
	if !r.used.Load() {
		return nil, false
	}
	w := workIn(ctx)
	if len(w.of) == 0 && w.shared {
		return nil, false // it is no step of a purchase
	}
	if slices.ContainsFunc(w.of, (*Trace).recorded) {
		return w.of, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range slices.Backward(r.recorded) {
		if slices.ContainsFunc(arguments, t.isAbout) {
			return traces{t}, false
		}
	}
	return nil, false
}

// isAbout reports whether an argument of a command names the lock of one of the request's SKUs.
func (t *Trace) isAbout(argument any) bool {
	text := fmt.Sprintf("%s", argument) // a string, or bytes
	return slices.ContainsFunc(t.skus, func(sku string) bool {
		_, after, found := strings.Cut(text, strategy.Key(sku))
		return found && (after == "" || after[0] == '}' || after[0] == '/')
	})
}

// ZooKeeper records a command by the SKU in its path, as zklock.Options.Trace. It never stops: taking
// or releasing a lock is one step.
func (r *Recorder) ZooKeeper(command, path, answer string) {
	shorten := func(text string) string { return short(randomName.ReplaceAllString(text, "$1…")) }
	if all, _ := r.of(context.Background(), path); !all.died() {
		all.add(KindZooKeeper, command+" "+shorten(path), shorten(answer))
	}
}

// randomName matches the name that rand.Text has made for an owner.
var randomName = regexp.MustCompile(`\b([A-Z2-7]{6})[A-Z2-7]{20}\b`)

// Lock returns an observer that also records what the lock's store answers about a key. It never stops: an observer
// must return quickly. next observes lost leases, and does not need to know of contention.
func (r *Recorder) Lock(next lock.Observer) lock.Observer {
	note := func(key, step, detail string) {
		all, _ := r.of(context.Background(), key)
		all.add(KindStep, step, detail)
	}
	lost := next.Lost
	next.Contended = func(key string) { note(key, stepContended, "held by another") }
	next.Lost = func(key string, cause error) {
		note(key, "lock-lost", "")
		lost(key, cause)
	}
	return next
}

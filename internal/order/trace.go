package order

import (
	"context"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/stock"
)

// Names of the steps of placing an order, in the order in which a request takes
// them. It takes the first always, and some more than once if it tries again.
const (
	StepBegun     = "begun"
	StepLockAsked = "lock-asked" // by strategies with a lock alone, as StepLockHeld and StepReleased
	StepLockHeld  = "lock-held"
	StepRead      = "read"    // the level of a SKU is known, in Step.Units; not where a lane sells by what it saw before
	StepWriting   = "writing" // the transaction begins, or goes on, where a lane had a head start
	StepWritten   = "written" // its statements are done; see Step.Units
	StepCommitted = "committed"
	StepReleased  = "released" // not by lanes, which answer before they give the lease back
)

// Step is a moment in the life of a request.
type Step struct {
	Name string
	At   time.Time // by the clock of this process
	SKU  string    // of StepRead and StepWritten, which there are of each line

	// Units are those that were read as available, or, where the strategy writes
	// back what it reckoned, those that were written. Otherwise, Known is false.
	Units int64
	Known bool
}

// Trace collects the steps of one request. It may be used by many goroutines at
// once.
type Trace struct {
	follow func(context.Context, Step) // nil for nobody

	mu    sync.Mutex
	steps []Step
}

type traceKey struct{}

// traces are those of all requests that something is done for.
type traces []*Trace

// WithTrace returns a ctx for Place, which writes its steps into the Trace.
// Without one, nothing is collected.
func WithTrace(ctx context.Context) (context.Context, *Trace) {
	return WithTraceTo(ctx, nil)
}

// WithTraceTo is WithTrace with somebody who is told each step as it is taken, by
// the goroutine that takes it: it goes on when follow returns.
func WithTraceTo(ctx context.Context, follow func(context.Context, Step)) (context.Context, *Trace) {
	t := &Trace{follow: follow}
	ctx = context.WithValue(ctx, traceKey{}, traces{t})
	mark(ctx, StepBegun)
	return ctx, t
}

// watch returns a ctx that writes into the Traces of these wishes, each of which
// gets its own steps, and no others.
func watch(ctx context.Context, wishes []*wish) context.Context {
	var all traces
	for _, w := range wishes {
		all = append(all, tracesOf(w.ctx)...)
	}
	if all == nil && tracesOf(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, all)
}

// Steps returns those that were taken so far.
func (t *Trace) Steps() []Step {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.steps)
}

func (t *Trace) add(ctx context.Context, steps ...Step) {
	t.mu.Lock()
	t.steps = append(t.steps, steps...)
	t.mu.Unlock()
	if t.follow == nil {
		return
	}
	for _, s := range steps {
		t.follow(ctx, s)
	}
}

func tracesOf(ctx context.Context) traces {
	all, _ := ctx.Value(traceKey{}).(traces)
	return all
}

// add gives the steps the time of now.
func (all traces) add(ctx context.Context, steps ...Step) {
	now := time.Now()
	for i := range steps {
		steps[i].At = now
	}
	for _, t := range all {
		t.add(ctx, steps...)
	}
}

// mark collects a step, if somebody wants to know.
func mark(ctx context.Context, step string) {
	if all := tracesOf(ctx); all != nil {
		all.add(ctx, Step{Name: step})
	}
}

// markRead collects the levels that were read.
func markRead(ctx context.Context, seen []stock.SKU) {
	all := tracesOf(ctx)
	if all == nil {
		return
	}
	steps := make([]Step, len(seen))
	for i, sku := range seen {
		steps[i] = Step{Name: StepRead, SKU: sku.Name, Units: sku.Level.Available, Known: true}
	}
	all.add(ctx, steps...)
}

// markWritten collects what was written: a number if the way is to write back
// what was reckoned, else nothing but the moment.
func markWritten(ctx context.Context, way stock.Way, takes []stock.Take) {
	all := tracesOf(ctx)
	if all == nil {
		return
	}
	steps := make([]Step, len(takes))
	for i, take := range takes {
		steps[i] = Step{Name: StepWritten, SKU: take.SKU}
		if way == stock.Overwrite {
			steps[i].Units, steps[i].Known = take.Seen.Available-take.Units, true
		}
	}
	all.add(ctx, steps...)
}

// markReleased collects the end of the leases, if there were any.
func markReleased(ctx context.Context) {
	for _, t := range tracesOf(ctx) {
		if slices.ContainsFunc(t.Steps(), func(s Step) bool { return s.Name == StepLockHeld }) {
			t.add(ctx, Step{Name: StepReleased, At: time.Now()})
		}
	}
}

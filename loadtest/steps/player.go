package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/shops"
	"example.com/shop/loadtest/verdict"
)

var (
	// ErrUnknown means that there is no strategy or scenario of this name.
	ErrUnknown = errors.New("unknown")

	// ErrNotApplicable means that a scenario cannot be played with a strategy: it
	// makes no sense there, or a server is missing.
	ErrNotApplicable = errors.New("does not apply")
)

// Options of a Player.
type Options struct {
	// Instances say where the shops keep things, and where instance 2 logs; their
	// Count is not used.
	Instances shops.Instances

	// Pairs is how many plays may run at once, each in a pair of shops of its own;
	// 0 means one.
	Pairs int
}

// Strategy is a way to sell that the shops know.
type Strategy struct {
	Name     string `json:"name"`
	Lock     string `json:"lock"` // empty for none
	Promises bool   `json:"promises"`
	Lesson   string `json:"lesson"`
	Missing  string `json:"missing,omitempty"` // why these shops cannot sell by it
}

// Player plays. It may be used by many goroutines at once.
type Player struct {
	from  shops.Instances
	table []Strategy
	stage chan struct{} // holds a value for each play that runs

	mu   sync.Mutex
	idle map[pace][]*pair
}

// Open starts what the first play needs. This program must call Child first thing
// in main, or in TestMain: instances that are to be killed are this program once
// more.
func Open(ctx context.Context, o Options) (*Player, error) {
	p := &Player{from: o.Instances, stage: make(chan struct{}, max(1, o.Pairs)), idle: map[pace][]*pair{}}
	first, err := openPair(ctx, p.from, quick)
	if err != nil {
		return nil, err
	}
	p.giveBack(quick, first)
	lab, err := first.shop(2).Lab(ctx)
	if err != nil {
		return nil, cleanup.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	for _, s := range lab.Strategies {
		p.table = append(p.table, Strategy{Name: s.Name, Lock: s.Lock, Promises: s.PromisesCorrect, Lesson: s.Lesson, Missing: s.Reason})
	}
	return p, nil
}

// Strategies returns the table of the shops.
func (p *Player) Strategies() []Strategy { return slices.Clone(p.table) }

// Play plays the scenario with the strategy, both by their names. An error means
// that it could not be played to its end: ErrUnknown, ErrNotApplicable, or what was
// in the way.
func (p *Player) Play(ctx context.Context, strategy, scenario string) (Play, error) {
	in, how, err := p.choose(strategy, scenario)
	if err != nil {
		return Play{}, err
	}
	select {
	case p.stage <- struct{}{}:
		defer func() { <-p.stage }()
	case <-ctx.Done():
		return Play{}, context.Cause(ctx)
	}
	for try := 1; ; try++ {
		played, err := p.playOnce(ctx, how, in)
		if !errors.Is(err, errMissed) || try == tries {
			return played, err
		}
	}
}

// tries is how often a play is begun that misses its schedule. Its outcome is not
// what is tried again for.
const tries = 3

func (p *Player) playOnce(ctx context.Context, how Strategy, in Scenario) (Play, error) {
	pair, err := p.take(ctx, in.pace)
	if err != nil {
		return Play{}, err
	}
	played, err := playIn(ctx, pair, how, in)
	if err != nil {
		// Requests may stand still in there, and a process.
		return Play{}, cleanup.Join(fmt.Errorf("%s, %s: %w", how.Name, in.Name, err), errors.Join(pair.kill(), pair.close(context.WithoutCancel(ctx))))
	}
	p.giveBack(in.pace, pair)
	return played, nil
}

func (p *Player) choose(strategy, scenario string) (Scenario, Strategy, error) {
	in, known := find(scenario)
	if !known {
		return in, Strategy{}, fmt.Errorf("%w scenario %.80q", ErrUnknown, scenario)
	}
	i := slices.IndexFunc(p.table, func(s Strategy) bool { return s.Name == strategy })
	if i < 0 {
		return in, Strategy{}, fmt.Errorf("%w strategy %.80q", ErrUnknown, strategy)
	}
	how := p.table[i]
	if why := how.Missing + in.excuse(how); why != "" {
		return in, how, fmt.Errorf("%s %w to %s: %s", in.Name, ErrNotApplicable, how.Name, why)
	}
	return in, how, nil
}

// playIn holds one play in a pair of shops.
func playIn(ctx context.Context, at *pair, how Strategy, in Scenario) (Play, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := at.ready(ctx); err != nil {
		return Play{}, err
	}
	s := newStage(at, how)
	if err := at.shop(2).Create(ctx, s.sku, in.stock); err != nil {
		return Play{}, err
	}
	err := in.play(ctx, s)
	if err == nil {
		err = s.finish(ctx)
	}
	events := s.events()
	if err == nil && fileLocked(events) {
		err = fmt.Errorf("it %w anybody else could write: a process was paused while a job of its shop wrote to the file", errMissed)
	}
	if err != nil {
		return Play{}, fmt.Errorf("%w; by then:\n%s", err, brief(events))
	}
	sold, judged, err := s.judge(ctx, in.stock)
	if err != nil {
		return Play{}, err
	}
	p := Play{
		Scenario: in.Name, Title: in.Title, Strategy: how.Name, Promises: how.Promises,
		Passed: judged.Verdict == verdict.Correct, Outcome: s.outcome(in.stock, sold, judged),
		Stock: in.stock, Sold: sold, Events: events, Wrong: -1,
	}
	if !p.Passed {
		p.Wrong, p.Why, p.Remedy = explain(how, in, p.Events)
	} else {
		p.Why = "Nobody was sold what is not there, and nobody went away while it was."
	}
	p.Expected = expected(p)
	return p, nil
}

// fileLocked reports whether SQLite refused somebody because of another process.
func fileLocked(events []Event) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return strings.Contains(e.Answer, "SQLITE_BUSY") })
}

// expected: who promises passes, and a wrong one fails in its own scenario. What else
// a wrong one fails in is shown and not judged.
func expected(p Play) bool {
	if p.Promises {
		return p.Passed
	}
	return !p.Passed || Failures()[p.Strategy] != p.Scenario
}

// brief is the events of a play that got stuck, for an error.
func brief(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%8.1f ms %s %s %s %s\n", float64(e.At.Microseconds())/1000, e.Actor, e.Kind, e.Text, e.Answer)
	}
	return b.String()
}

// take returns a pair that nobody uses.
func (p *Player) take(ctx context.Context, how pace) (*pair, error) {
	p.mu.Lock()
	if free := p.idle[how]; len(free) > 0 {
		taken := free[len(free)-1]
		p.idle[how] = free[:len(free)-1]
		p.mu.Unlock()
		return taken, nil
	}
	p.mu.Unlock()
	return openPair(ctx, p.from, how)
}

func (p *Player) giveBack(how pace, free *pair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle[how] = append(p.idle[how], free)
}

// Close ends all shops, their processes too, each within a bounded time even if ctx
// has none. No play may run any more.
func (p *Player) Close(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, pairs := range p.idle {
		for _, one := range pairs {
			errs = append(errs, one.close(ctx))
		}
	}
	p.idle = nil
	return errors.Join(errs...)
}

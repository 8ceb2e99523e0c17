package step

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Explored is what came of all schedules of a strategy.
type Explored struct {
	Strategy  string   `json:"strategy"`
	Designed  bool     `json:"designed"`  // it is designed to be correct
	Schedules []string `json:"schedules"` // their names
	Failed    []string `json:"failed"`    // of these, the shortest name first
	Oversold  int      `json:"oversold"`
	Undersold int      `json:"undersold"` // no unit is oversold, but one is left, or a buyer waits for ever
	Cut       bool     `json:"cut"`       // it was interrupted
}

// add counts a schedule.
func (e *Explored) add(p Position) {
	e.Schedules = append(e.Schedules, p.Schedule)
	if p.Passed {
		return
	}
	e.Failed = append(e.Failed, p.Schedule)
	if p.Sold > p.Units {
		e.Oversold++
	} else {
		e.Undersold++
	}
}

// Shortest is the schedule of those that failed with the shortest name; empty if none failed.
func (e Explored) Shortest() string {
	if len(e.Failed) == 0 {
		return ""
	}
	return e.Failed[0]
}

// Bounds of what is explored. They are also flags.
type Bounds struct {
	Buyers      int   `default:"2" help:"Requests for the last unit (2 to 3)."`
	Units       int64 `default:"1" help:"Units that are left (1 to 2)."`
	Preemptions int   `default:"2" help:"Switches away from a request that could go on, a fault among them (0 to 4)."`
	Crash       bool  `help:"Also: at each step, the process may die or its lock run out; one such fault in a schedule."`
}

// DefaultBounds are those of a command line without flags.
func DefaultBounds() Bounds {
	return Bounds{Buyers: 2, Units: 1, Preemptions: 2}
}

// parallel is how many schedules are played at a time, each in shops of its own: some are about time, and pass it.
const parallel = 4

// Explore plays each schedule of a strategy within the bounds. progress is called with the number of schedules played, and
// of those that are known and still to be played. If ctx ends, the error is its cause, and what was found by then is
// returned as well. Other errors are those of Position.
func (p *Player) Explore(ctx context.Context, name string, within Bounds, progress func(played, todo int)) (Explored, error) {
	strategy, err := p.strategy(ctx, name)
	if err != nil {
		return Explored{}, err
	}
	found := Explored{Strategy: name, Designed: strategy.Designed, Schedules: []string{}, Failed: []string{}}
	var mu sync.Mutex
	for todo := [][]act{{}}; len(todo) > 0 && err == nil; {
		wave, left := todo, len(todo)
		todo = nil
		group, exploring := errgroup.WithContext(ctx)
		group.SetLimit(2 * parallel) // they wait more than they work, and no act is about time
		for _, acts := range wave {
			group.Go(func() error {
				if exploring.Err() != nil {
					return nil
				}
				played, done, err := p.walk(exploring, strategy, plan{Bounds: within, acts: acts})
				mu.Lock()
				defer mu.Unlock()
				left--
				if errors.Is(err, errNoLock) {
					return nil // it is no schedule of this strategy
				}
				if err != nil || exploring.Err() != nil {
					return err
				}
				todo = append(todo, instead(done, len(acts))...)
				found.add(played)
				progress(len(found.Schedules), left+len(todo))
				return nil
			})
		}
		err = cmp.Or(group.Wait(), ctx.Err())
	}
	slices.Sort(found.Schedules)
	slices.SortFunc(found.Failed, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	if ctx.Err() != nil {
		found.Cut, err = true, context.Cause(ctx)
	}
	return found, err
}

// instead returns the schedules that go another way than this one, behind its first acts.
func instead(done []decision, first int) (others [][]act) {
	for i := first; i < len(done); i++ {
		for _, other := range done[i].instead {
			var acts []act
			for _, d := range done[:i] {
				acts = append(acts, d.act)
			}
			others = append(others, append(acts, other))
		}
	}
	return others
}

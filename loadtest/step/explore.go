package step

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Explored is what came of all schedules of a strategy.
type Explored struct {
	Strategy  string   `json:"strategy"`
	Promises  bool     `json:"promises"`  // it is designed to be correct
	Schedules []string `json:"schedules"` // their names
	Oversold  int      `json:"oversold"`
	Undersold int      `json:"undersold"` // a unit is left, or a buyer waits for ever
	Shortest  string   `json:"shortest"`  // of those that failed, by its name; empty if none did
	Cut       bool     `json:"cut"`       // it was interrupted
}

// Failed is how many schedules did.
func (e Explored) Failed() int { return e.Oversold + e.Undersold }

// add counts a schedule.
func (e *Explored) add(p Position) {
	e.Schedules = append(e.Schedules, p.Schedule)
	switch {
	case p.Passed:
		return
	case p.Sold > p.Units:
		e.Oversold++
	default:
		e.Undersold++
	}
	name, least := p.Schedule, e.Shortest
	if least == "" || cmp.Or(cmp.Compare(len(name), len(least)), cmp.Compare(name, least)) < 0 {
		e.Shortest = name
	}
}

// Bounds of what is explored.
type Bounds struct {
	Buyers      int
	Preemptions int  // switches away from a request that could go on, a fault among them
	Crash       bool // one fault in a schedule: a process dies, or a lock runs out
	Parallel    int  // schedules at a time, each in shops of its own
}

// Explore plays each schedule of a strategy within the bounds. progress gets how many were played and how many are known
// beside. If ctx ends, the error is its cause, and what was found by then is returned as well. Other errors are those of
// Position.
func (p *Player) Explore(ctx context.Context, name string, within Bounds, progress func(played, todo int)) (Explored, error) {
	strategy, err := p.strategy(ctx, name)
	if err != nil {
		return Explored{}, err
	}
	found := Explored{Strategy: name, Promises: strategy.PromisesCorrect, Schedules: []string{}}
	all := plan{buyers: within.Buyers, units: 1, preemptions: within.Preemptions, faults: within.Crash}
	var mu sync.Mutex
	for todo := [][]act{{}}; len(todo) > 0 && err == nil; {
		wave := todo
		todo = nil
		group, exploring := errgroup.WithContext(ctx)
		group.SetLimit(within.Parallel)
		for i, acts := range wave {
			how := all
			how.acts = acts
			group.Go(func() error {
				if exploring.Err() != nil {
					return nil
				}
				played, done, err := p.walk(exploring, strategy, how)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || exploring.Err() != nil {
					return err
				}
				todo = append(todo, instead(done, len(acts))...)
				found.add(played)
				progress(len(found.Schedules), len(wave)-1-i+len(todo))
				return nil
			})
		}
		err = cmp.Or(group.Wait(), ctx.Err())
	}
	slices.Sort(found.Schedules)
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

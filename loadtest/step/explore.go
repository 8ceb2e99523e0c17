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
	todo := [][]act{{}}
	var mu sync.Mutex
	changed := sync.NewCond(&mu)
	busy := 0
	group, exploring := errgroup.WithContext(ctx)
	defer context.AfterFunc(exploring, func() { mu.Lock(); defer mu.Unlock(); changed.Broadcast() })()
	for range within.Parallel {
		group.Go(func() error {
			mu.Lock()
			defer mu.Unlock()
			for {
				for len(todo) == 0 && busy > 0 && exploring.Err() == nil {
					changed.Wait()
				}
				if len(todo) == 0 || exploring.Err() != nil {
					return nil
				}
				how := all
				how.acts = todo[len(todo)-1]
				todo = todo[:len(todo)-1]
				busy++
				mu.Unlock()
				played, done, err := p.walk(exploring, strategy, how)
				mu.Lock()
				busy--
				changed.Broadcast()
				if err != nil {
					return err
				}
				for i := len(how.acts); i < len(done); i++ {
					for _, other := range done[i].instead {
						acts := make([]act, 0, i+1)
						for _, d := range done[:i] {
							acts = append(acts, d.act)
						}
						todo = append(todo, append(acts, other))
					}
				}
				found.add(played)
				progress(len(found.Schedules), len(todo)+busy)
			}
		})
	}
	err = group.Wait()
	slices.Sort(found.Schedules)
	if ctx.Err() != nil {
		found.Cut, err = true, context.Cause(ctx)
	}
	return found, err
}

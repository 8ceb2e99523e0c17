package steps

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

// Wish is a play to be held, a number of times.
type Wish struct {
	Strategy, Scenario string
	Times              int
}

// Wishes returns all plays that these shops can hold. Where the outcome is known
// beforehand, they are to be held that many times, else once.
func (p *Player) Wishes(times int) []Wish {
	var wishes []Wish
	for _, how := range p.table {
		for _, in := range Scenarios() {
			if how.Missing+in.excuse(how) != "" {
				continue
			}
			w := Wish{Strategy: how.Name, Scenario: in.Name, Times: 1}
			if how.Promises || Failures()[how.Name] == in.Name {
				w.Times = times
			}
			wishes = append(wishes, w)
		}
	}
	return wishes
}

// Series holds the plays, as many at once as there may be pairs, and returns one of
// each in the order of the wishes: one that was not as expected, if there is any.
// told is called after each, from one goroutine at a time.
func (p *Player) Series(ctx context.Context, wishes []Wish, told func(Play)) ([]Play, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	played := make([]Play, len(wishes))
	var mu sync.Mutex
	work := make(chan int)
	var wait sync.WaitGroup
	for range cap(p.stage) {
		wait.Go(func() {
			for i := range work {
				one, err := p.Play(ctx, wishes[i].Strategy, wishes[i].Scenario)
				if err != nil {
					cancel(err)
					continue
				}
				mu.Lock()
				if played[i].Strategy == "" || !one.Expected {
					played[i] = one
				}
				told(one)
				mu.Unlock()
			}
		})
	}
	for _, i := range longestFirst(wishes) {
		if ctx.Err() == nil {
			work <- i
		}
	}
	close(work)
	wait.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return played, nil
}

// longestFirst lets nobody wait at the end for a play that began last.
func longestFirst(wishes []Wish) []int {
	var order []int
	for i, w := range wishes {
		for range w.Times {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weight(wishes[b]), weight(wishes[a])) })
	return order
}

func weight(w Wish) int {
	in, _ := find(w.Scenario)
	switch {
	case in.Name == "crash" && w.Strategy == "setnx-expire":
		return 2
	case in.pace == quick:
		return 1
	}
	return 0
}

// Choose returns the plays of a name: a wrong strategy in its scenario, a right one
// in all that apply, or a scenario with the strategies that fail it.
func (p *Player) Choose(name string) ([]Wish, error) {
	var wishes []Wish
	for _, w := range p.Wishes(1) {
		fails, wrong := Failures()[w.Strategy]
		if w.Strategy == name && (!wrong || fails == w.Scenario) || w.Scenario == name && fails == w.Scenario {
			wishes = append(wishes, w)
		}
	}
	if len(wishes) > 0 {
		return wishes, nil
	}
	for _, how := range p.table {
		if how.Name == name {
			return nil, fmt.Errorf("%s cannot be played: %w: %s", name, ErrNotApplicable, how.Missing)
		}
	}
	return nil, fmt.Errorf("%w: %.80q is no strategy and no scenario", ErrUnknown, name)
}

// RemedyFor returns the play of a right strategy in the same schedule.
func RemedyFor(failed Play) Wish {
	in, _ := find(failed.Scenario)
	by := in.remedy
	if l := lessons()[failed.Strategy]; Failures()[failed.Strategy] == in.Name && l.by != "" {
		by = l.by
	}
	return Wish{Strategy: by, Scenario: failed.Scenario, Times: 1}
}

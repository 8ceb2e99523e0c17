package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/app"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

// steppedShops is one instance of the shop for each buyer, on the same stores. One schedule at a time is played there.
type steppedShops struct {
	clients   []*shopclient.Client
	oneWriter bool         // the database is a SQLite file
	kill      func() error // kills the process of the first; nil where all are in this process
	close     func(ctx context.Context) error
}

// openStepped starts n instances in this process. Their locks live for longer than a schedule takes, so that they run
// out only where it says so.
func openStepped(ctx context.Context, from shops.Instances, n int) (*steppedShops, error) {
	settings, undo, err := from.Prepare(ctx)
	if err != nil {
		return nil, err
	}
	settings.ReconcileAt, settings.SweepEvery = "off", time.Minute
	settings.LockTTL, settings.LabShortTTL, settings.LockWait = 5*time.Second, 5*time.Second, time.Minute
	conns := shopclient.NewConnections(maxBuyers, answerTimeout)
	closers := []func(context.Context) error{}
	s := &steppedShops{oneWriter: settings.MySQL == "", close: func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		var errs []error
		for _, stop := range closers {
			errs = append(errs, stop(ctx))
		}
		conns.CloseIdleConnections()
		return errors.Join(append(errs, undo())...)
	}}
	for i := range n {
		shop, err := app.Start(ctx, settings)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start instance %d: %w", i+1, err), s.close(context.WithoutCancel(ctx)))
		}
		closers = append(closers, shop.Shutdown)
		s.clients = append(s.clients, shopclient.New(shop.URL(), conns))
	}
	return s, nil
}

// repeats is how often a schedule is begun: who of several waiters gets a lock that has run out is left to chance.
const repeats = 20

// explorer plays all schedules of a strategy, several at a time.
type explorer struct {
	from    shops.Instances
	workers int
	idle    []*steppedShops
}

// Explored is what came of all schedules of a strategy.
type Explored struct {
	Strategy  shopclient.Strategy
	Schedules int
	Oversold  int
	Undersold int  // nobody got the unit, or a buyer waits for ever
	Shortest  Play // of those that failed, by its name; none if Scenario is empty
	Cut       bool // it was interrupted
}

// Failed is how many schedules did.
func (e Explored) Failed() int { return e.Oversold + e.Undersold }

// add counts a schedule.
func (e *Explored) add(p Play) {
	e.Schedules++
	switch {
	case p.Passed:
		return
	case p.Sold > p.Stock:
		e.Oversold++
	default:
		e.Undersold++
	}
	name, least := p.Scenario, e.Shortest.Scenario
	if least == "" || cmp.Or(cmp.Compare(len(name), len(least)), cmp.Compare(name, least)) < 0 {
		e.Shortest = p
	}
}

// explore plays each schedule of p's bounds. progress gets how many were played and how many are known beside.
func (x *explorer) explore(ctx context.Context, strategy shopclient.Strategy, p plan, progress func(played, todo int)) (Explored, error) {
	found := Explored{Strategy: strategy}
	todo := [][]act{{}}
	var mu sync.Mutex
	changed := sync.NewCond(&mu)
	busy := 0
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, func() { mu.Lock(); defer mu.Unlock(); changed.Broadcast() })()
	for _, each := range x.idle {
		group.Go(func() error {
			mu.Lock()
			defer mu.Unlock()
			for {
				for len(todo) == 0 && busy > 0 && ctx.Err() == nil {
					changed.Wait()
				}
				if len(todo) == 0 || ctx.Err() != nil {
					return nil
				}
				p := p
				p.acts = todo[len(todo)-1]
				todo = todo[:len(todo)-1]
				busy++
				mu.Unlock()
				played, done, err := walkThrough(ctx, each, strategy, p)
				for try := 1; errors.Is(err, ErrSchedule) && try < repeats; try++ {
					played, done, err = walkThrough(ctx, each, strategy, p)
				}
				mu.Lock()
				busy--
				changed.Broadcast()
				if err != nil {
					return err
				}
				for i := len(p.acts); i < len(done); i++ {
					for _, other := range done[i].instead {
						acts := make([]act, 0, i+1)
						for _, d := range done[:i] {
							acts = append(acts, d.act)
						}
						todo = append(todo, append(acts, other))
					}
				}
				found.add(played)
				progress(found.Schedules, len(todo)+busy)
			}
		})
	}
	err := group.Wait()
	return found, err
}

// open starts the shops of all workers.
func (x *explorer) open(ctx context.Context, buyers int) error {
	var mu sync.Mutex
	group, opening := errgroup.WithContext(ctx)
	for range x.workers {
		group.Go(func() error {
			s, err := openStepped(context.WithoutCancel(opening), x.from, buyers)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				x.idle = append(x.idle, s)
			}
			return err
		})
	}
	return group.Wait()
}

func (x *explorer) close(ctx context.Context) error {
	var errs []error
	for _, s := range x.idle {
		errs = append(errs, s.close(ctx))
	}
	return errors.Join(errs...)
}

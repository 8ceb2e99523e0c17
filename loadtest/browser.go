package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/faults"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/step"
	"example.com/shop/loadtest/web"
)

// serve shows the page until ctx ends.
func (l loadTest) serve(ctx context.Context, chosen []shopclient.Strategy, shop shopclient.Lab) (err error) {
	player := step.NewPlayer(l.Servers)
	defer func() { err = errors.Join(err, player.Close()) }()
	report := func(line string) { fmt.Fprintln(l.screen.out, line) }
	if err := web.Serve(ctx, l.UI, l.lab(chosen, shop, player), report); err != nil {
		return fmt.Errorf("--ui: %w", err)
	}
	return nil
}

// lab is the load test as its page sees it: the flags pre-fill the form.
func (l loadTest) lab(chosen []shopclient.Strategy, shop shopclient.Lab, player *step.Player) web.Lab {
	first := web.Choice{Buyers: l.Buyers, Stock: l.Stock, Instances: l.Instances, ThinkMS: crowd.Milliseconds(l.Think), Together: true}
	for _, s := range chosen {
		first.Strategies = append(first.Strategies, s.Name)
	}
	lessons := step.Lessons()
	if l.Target != "" { // a play kills requests, and so needs shops of its own
		first.Instances, lessons = 0, nil
	}
	return web.Lab{
		Strategies: shop.Strategies, Lessons: lessons, Defaults: first,
		Check: func(c web.Choice) error {
			l := l.with(c)
			l.From = "embedded" // containers run by now, and have addresses
			err := l.Validate()
			if err == nil && c.Together && l.shops(l.Instances).CheckDescriptors(len(c.Strategies), c.Buyers) != nil {
				err = &web.Problem{Text: "together these races need more file descriptors than this process may open: let them race one after the other"}
			}
			return err
		},
		Report: func(c web.Choice) result.Report { return l.with(c).report(shop) },
		Race: func(ctx context.Context, c web.Choice, s shopclient.Strategy, tally *crowd.Tally) (result.Strategy, error) {
			return l.with(c).race(ctx, s, tally)
		},
		Position: func(ctx context.Context, name string, loose bool) (step.Position, error) {
			if loose {
				return player.PlayLoose(ctx, name)
			}
			return player.Position(ctx, name)
		},
		Explore: func(ctx context.Context, strategy string, crash bool) (step.Explored, error) {
			bounds := step.DefaultBounds()
			bounds.Crash = crash
			return player.Explore(ctx, strategy, bounds, func(int, int) {})
		},
		KillPrimary: func(ctx context.Context) ([]faults.Failover, error) {
			return faults.KillPrimary(ctx, 1, func(string) {})
		},
	}
}

// with returns a load test whose flags are the choice.
func (l loadTest) with(c web.Choice) loadTest {
	l.Strategies, l.Buyers, l.Stock = slices.Clone(c.Strategies), c.Buyers, c.Stock
	l.Think = time.Duration(c.ThinkMS * float64(time.Millisecond))
	if l.Target == "" {
		l.Instances = c.Instances
	}
	return l
}

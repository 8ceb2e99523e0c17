package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/faults"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
	"example.com/shop/loadtest/step"
	"example.com/shop/loadtest/web"
)

// browserLab is the load test as its page sees it: the flags pre-fill the form.
type browserLab struct {
	loadTest
	chosen []shopclient.Strategy
	shop   shopclient.Lab
	player *step.Player
}

// serve shows the page until ctx ends.
func (l loadTest) serve(ctx context.Context, chosen []shopclient.Strategy, shop shopclient.Lab) (err error) {
	b := &browserLab{l, chosen, shop, step.NewPlayer(shops.Instances{Servers: l.Servers})}
	defer func() { err = errors.Join(err, b.player.Close()) }()
	report := func(line string) { fmt.Fprintln(l.screen.out, line) }
	if err := web.Serve(ctx, l.UI, b, report); err != nil {
		return fmt.Errorf("--ui: %w", err)
	}
	return nil
}

// Strategies is the shop's own table.
func (b *browserLab) Strategies() []shopclient.Strategy { return b.shop.Strategies }

// Defaults are the flags.
func (b *browserLab) Defaults() web.Choice {
	c := web.Choice{Buyers: b.Buyers, Stock: b.Stock, ThinkMS: crowd.Milliseconds(b.Think), Together: true}
	for _, s := range b.chosen {
		c.Strategies = append(c.Strategies, s.Name)
	}
	if b.Target == "" {
		c.Instances = b.Instances
	}
	return c
}

// with returns a load test whose flags are the choice.
func (b *browserLab) with(c web.Choice) loadTest {
	l := b.loadTest
	l.Strategies, l.Buyers, l.Stock, l.Think = slices.Clone(c.Strategies), c.Buyers, c.Stock, c.Think()
	if l.Target == "" {
		l.Instances = c.Instances
	}
	return l
}

// Check validates the flags.
func (b *browserLab) Check(c web.Choice) *web.Problem {
	l := b.with(c)
	l.From = "embedded" // containers run by now, and have addresses
	err := l.Validate()
	if wrong := (*flagError)(nil); errors.As(err, &wrong) {
		return &web.Problem{Field: wrong.flag, Text: wrong.want}
	}
	if err != nil {
		return &web.Problem{Text: err.Error()}
	}
	return nil
}

// Fit compares with the limit of file descriptors.
func (b *browserLab) Fit(c web.Choice) bool {
	return b.with(c).shops(c.Instances).CheckDescriptors(len(c.Strategies), c.Buyers) == nil
}

// Report is a report of no races yet.
func (b *browserLab) Report(c web.Choice) result.Report {
	r := b.with(c).report(b.shop)
	r.Run.Together = c.Together && len(c.Strategies) > 1
	return r
}

// Race holds the race of one strategy.
func (b *browserLab) Race(ctx context.Context, c web.Choice, s shopclient.Strategy, w crowd.Watcher) (result.Strategy, error) {
	return b.with(c).race(ctx, s, w)
}

// Lessons are those of package step. They kill requests, and so need shops of their own.
func (b *browserLab) Lessons() []step.Lesson {
	if b.Target != "" {
		return nil
	}
	return step.Lessons()
}

// Position plays in shops that stay open until the page is closed.
func (b *browserLab) Position(ctx context.Context, name string, loose bool) (step.Position, error) {
	if loose {
		return b.player.PlayLoose(ctx, name)
	}
	return b.player.Position(ctx, name)
}

// Explore plays in the same shops, within the bounds that the explore command has by default.
func (b *browserLab) Explore(ctx context.Context, strategy string, crash bool) (step.Explored, error) {
	bounds := step.DefaultBounds()
	bounds.Crash = crash
	return b.player.Explore(ctx, strategy, bounds, func(int, int) {})
}

// KillPrimary is `faults kill-primary --compare`.
func (b *browserLab) KillPrimary(ctx context.Context) ([]faults.Failover, error) {
	return faults.KillPrimary(ctx, true, 1, func(string) {})
}

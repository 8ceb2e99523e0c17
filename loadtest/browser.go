package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/shop/loadtest/buyers"
	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/machine"
	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
	"example.com/shop/loadtest/steps"
	"example.com/shop/loadtest/ui"
)

// uiProblem says what is wrong with --ui, if it is given and something is.
func (f flags) uiProblem() string {
	if f.UI == nil {
		return ""
	}
	words := f.words()
	err := ui.CheckAddress(*f.UI)
	switch {
	case err != nil:
		return "--ui " + err.Error()
	case f.JSON != "" || f.HTML != "":
		return "--ui offers its reports in the browser; leave out --json and --html"
	case len(words) > 0:
		return "--ui shows buyers who want one unit each, all at once; leave out " + words[0]
	}
	return ""
}

// inBrowser is the lab as its page sees it: the flags are what the form says at
// first.
type inBrowser struct {
	lab
	chosen []shopclient.Strategy
	shop   shopclient.Lab
	stage  *stage
}

// serve shows the page until ctx ends.
func (l lab) serve(ctx context.Context) (err error) {
	chosen, shop, err := l.choose(ctx)
	if err != nil {
		return err
	}
	stage := &stage{open: func() (*steps.Player, error) {
		return steps.Open(ctx, steps.Options{
			Instances: shops.Instances{MySQL: l.MySQL, Redis: l.Redis, Redlock: l.Redlock, ZooKeeper: l.ZooKeeper, Log: l.log},
		})
	}}
	defer func() { err = cleanup.Join(err, stage.close(context.WithoutCancel(ctx))) }()
	tell := func(line string) { fmt.Fprintln(l.screen.out, line) }
	if err := ui.Serve(ctx, *l.UI, inBrowser{l, chosen, shop, stage}, tell); err != nil {
		return fmt.Errorf("--ui: %w", err)
	}
	return nil
}

// Strategies is the shop's own table.
func (b inBrowser) Strategies() []shopclient.Strategy { return b.shop.Strategies }

// Usual is what the flags say.
func (b inBrowser) Usual() ui.Choice {
	c := ui.Choice{Buyers: b.Buyers, Stock: b.Stock, ThinkMS: report.Milliseconds(b.Think), Together: true}
	for _, s := range b.chosen {
		c.Strategies = append(c.Strategies, s.Name)
	}
	if b.Target == "" {
		c.Instances = b.instances()
	}
	return c
}

// with returns a lab whose flags say what was chosen.
func (b inBrowser) with(c ui.Choice) lab {
	l := b.lab
	l.Strategies, l.Buyers, l.Stock, l.Think = slices.Clone(c.Strategies), c.Buyers, c.Stock, c.Think()
	if l.Target == "" {
		l.Instances = &c.Instances
	}
	return l
}

// Check asks the checks of the flags. Their messages begin with the flag.
func (b inBrowser) Check(c ui.Choice) *ui.Problem {
	l := b.with(c)
	l.Servers = "" // they run by now, and have names
	err := l.check()
	if err != nil {
		flag, rest, _ := strings.Cut(strings.TrimPrefix(err.Error(), cli.ErrUsage.Error()+": --"), " ")
		if _, want, ok := strings.Cut(rest, ": "); ok {
			rest = want
		}
		return &ui.Problem{Field: flag, Text: rest}
	}
	races := 1
	if c.Together {
		races = len(c.Strategies)
	}
	if err := machine.AllowConnections(races * l.connections()); err != nil {
		text := err.Error()
		if races > 1 {
			text += ", or let them race one after the other"
		}
		return &ui.Problem{Field: "buyers", Text: text}
	}
	return nil
}

// Race holds the race of one strategy.
func (b inBrowser) Race(ctx context.Context, c ui.Choice, how shopclient.Strategy, watch ui.Watcher) (report.Strategy, error) {
	l := b.with(c)
	l.ready = watch.Ready
	l.watch = func(_ string, _ int, tally *buyers.Tally) func() {
		watch.Connecting(tally)
		return watch.Answered
	}
	return l.race(ctx, how)
}

// Scenarios are those of the step command. They stop and kill shops, and so have
// shops of their own.
func (b inBrowser) Scenarios() []steps.Scenario {
	if b.Target != "" {
		return nil
	}
	return steps.Scenarios()
}

// Excuse asks the table of the step command.
func (b inBrowser) Excuse(how shopclient.Strategy, what steps.Scenario) string {
	return steps.Excuse(steps.Strategy{Name: how.Name, Lock: how.Lock, Promises: how.PromisesCorrect, Lesson: how.Lesson}, what)
}

// Play plays in shops that stay open until the page is closed.
func (b inBrowser) Play(ctx context.Context, how shopclient.Strategy, what steps.Scenario) (steps.Play, error) {
	player, err := b.stage.get()
	if err != nil {
		return steps.Play{}, err
	}
	return player.Play(ctx, how.Name, what.Name)
}

// Blank is a report of no races yet.
func (b inBrowser) Blank(c ui.Choice) report.Report {
	r := b.with(c).blank(time.Now())
	r.Machine.DatabaseVersion, r.Machine.RedisVersion = b.shop.Database, b.shop.Redis
	r.Run.Together = c.Together && len(c.Strategies) > 1
	return r
}

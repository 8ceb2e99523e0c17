package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"example.com/shop/loadtest/buyers"
	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/machine"
	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/shops"
)

// lab is one load test.
type lab struct {
	flags
	screen screen
	log    *slog.Logger // what goes wrong in shops that it starts

	// watch is told of each race when its buyers set out, and calls stop when all have
	// an answer.
	watch func(strategy string, all int, tally *buyers.Tally) (stop func())

	// ready, if not nil, is called when all buyers of a race have connected.
	ready func(ctx context.Context)
}

// test holds one race per strategy and reports. It returns cli.ErrUsage if the flags
// ask for what cannot be, errBroken if a strategy did not keep its promise.
func (l lab) test(ctx context.Context) (err error) {
	stop, err := l.start(ctx, l.screen.tell)
	if err != nil {
		return err
	}
	defer func() { err = cleanup.Join(err, stop()) }()
	if l.UI != nil {
		return l.serve(ctx)
	}
	return l.races(ctx)
}

func (l lab) races(ctx context.Context) error {
	if err := machine.AllowConnections(l.connections()); err != nil {
		return fmt.Errorf("%w: --buyers %d: %w", cli.ErrUsage, l.Buyers, err)
	}
	chosen, shop, err := l.choose(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(l.screen.out, l.headline()); err != nil {
		return err
	}
	r := l.blank(time.Now())
	r.Machine.DatabaseVersion, r.Machine.RedisVersion = shop.Database, shop.Redis
	cost := newMeter()
	for _, how := range chosen {
		if !how.Available {
			r.NotRun = append(r.NotRun, report.NotRun{Name: how.Name, Reason: how.Reason})
			continue
		}
		result, err := l.race(ctx, how)
		if err != nil {
			// What is known by now is worth showing; a file would pass for a whole report.
			return errors.Join(fmt.Errorf("%s: %w", how.Name, err), l.show(r))
		}
		r.Strategies = append(r.Strategies, result)
	}
	r.Harness = cost.read(l.Target == "")
	if err := l.catch(ctx, &r); err != nil {
		return errors.Join(fmt.Errorf("step by step: %w", err), l.show(r))
	}
	if err := errors.Join(l.show(r), l.save(r)); err != nil {
		return err
	}
	if len(r.Broken()) > 0 {
		return errBroken
	}
	return nil
}

// source is where the shops of a race come from, instances of them where they
// are to be started.
func (l lab) source(instances int) shops.Source {
	if l.Target != "" {
		return shops.Running{URL: l.Target}
	}
	return l.shops(instances, l.log)
}

// connections is how many a race needs: each buyer's, and its other end where
// the shops are in this process.
func (l lab) connections() int {
	if l.Target != "" {
		return l.Buyers
	}
	return 2 * l.Buyers
}

// headline says what is about to run.
func (l lab) headline() string {
	where := fmt.Sprintf("%d shop instances", l.instances())
	if l.instances() == 1 {
		where = "1 shop instance"
	}
	stores := l.source(l.instances()).Stores()
	kept := fmt.Sprintf("Database: %s. Redis: %s.", stores.Database, stores.Redis)
	if l.Target != "" {
		where, kept = l.Target, "Its database and Redis are its own."
	}
	return fmt.Sprintf("%s\nThink time between reading stock and writing it: %v.\n%s\n",
		report.Wrap(l.wants(l.Buyers, l.Stock)+", from "+where+".", report.Width), l.Think, kept)
}

// blank is a report on no races yet.
func (l lab) blank(now time.Time) report.Report {
	m, stores := machine.Look(), l.source(l.instances()).Stores()
	r := report.Report{
		Version:   report.Version,
		StartedAt: now.UTC(),
		NotRun:    []report.NotRun{},
		Machine: report.Machine{
			OS: m.OS, Arch: m.Arch, CPUs: m.CPUs, CPUModel: m.CPUModel, Go: m.Go, Commit: m.Commit,
			Database: stores.Database, Redis: stores.Redis,
		},
		Run: l.asked(),
	}
	return r
}

// show prints the table and what it means.
func (l lab) show(r report.Report) error {
	if len(r.Strategies) == 0 {
		return nil
	}
	if l.screen.live {
		fmt.Fprintln(l.screen.progress) // the bars end, the table begins
	}
	p := report.Printer{Out: l.screen.out, Color: l.screen.colour}
	if err := p.Table(r); err != nil {
		return err
	}
	fmt.Fprintln(l.screen.out)
	return p.Explain(r)
}

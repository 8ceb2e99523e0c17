package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/machine"
	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/shops"
)

// lab is one load test.
type lab struct {
	flags
	screen screen
	log    *slog.Logger // what goes wrong in shops that it starts
}

// test holds one race per strategy and reports. It returns errUsage if the flags
// ask for what cannot be, errBroken if a strategy did not keep its promise.
func (l lab) test(ctx context.Context) error {
	if err := machine.AllowConnections(l.connections()); err != nil {
		return fmt.Errorf("%w: --buyers %d: %w", errUsage, l.Buyers, err)
	}
	chosen, err := l.choose(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(l.screen.out, l.headline()); err != nil {
		return err
	}
	r := l.blank(time.Now())
	for _, how := range chosen {
		result, err := l.race(ctx, how)
		if err != nil {
			// What is known by now is worth showing; a file would pass for a whole report.
			return errors.Join(fmt.Errorf("%s: %w", how.Name, err), l.show(r))
		}
		r.Strategies = append(r.Strategies, result)
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
	return shops.Instances{Count: instances, MySQL: l.MySQL, Redis: l.Redis, Log: l.log}
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
	return fmt.Sprintf("%s buyers want one of %s units each, all at once, from %s.\n"+
		"Think time between reading stock and writing it: %v.\n%s\n",
		humanize.Comma(int64(l.Buyers)), humanize.Comma(l.Stock), where, l.Think, kept)
}

// blank is a report on no races yet.
func (l lab) blank(now time.Time) report.Report {
	m, stores := machine.Look(), l.source(l.instances()).Stores()
	r := report.Report{
		StartedAt: now.UTC(),
		Machine: report.Machine{
			OS: m.OS, Arch: m.Arch, CPUs: m.CPUs, CPUModel: m.CPUModel, Go: m.Go, Commit: m.Commit,
			Database: stores.Database, Redis: stores.Redis,
		},
		Run: report.Run{
			Buyers: l.Buyers, Stock: l.Stock, Instances: l.instances(), Target: l.Target,
			ThinkMS: report.Milliseconds(l.Think),
		},
	}
	if l.Target != "" {
		r.Run.Instances = 0
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

// save writes the JSON where it was asked for.
func (l lab) save(r report.Report) error {
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		return err
	}
	switch l.JSON {
	case "":
		return nil
	case "-":
		_, err := b.WriteTo(l.screen.json)
		return err
	}
	return os.WriteFile(l.JSON, b.Bytes(), 0o644) //nolint:gosec // a report is no secret
}

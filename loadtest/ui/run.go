package ui

import (
	"context"
	"errors"
	"sync"

	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/shopclient"
)

// errStopped is the cause when the user pressed Stop.
var errStopped = errors.New("stopped")

// run is a race of each chosen strategy.
type run struct {
	id      int
	choice  Choice
	stopped chan struct{} // closed by Stop
	stop    func()        // closes it, once

	mu     sync.Mutex
	phase  string
	races  []*race
	report report.Report // once it is over
}

// Phases of a run, and of a race in it.
const (
	waiting    = "waiting"    // for the races before it
	opening    = "opening"    // shops are being started
	connecting = "connecting" // buyers come to the door
	racing     = "racing"
	checking   = "checking" // the shop's books against what buyers were told
	running    = "running"
	done       = "done"
	failed     = "failed"
	ended      = "stopped"
)

func newRun(c Choice, chosen []shopclient.Strategy) *run {
	r := &run{choice: c, stopped: make(chan struct{}), phase: running}
	r.stop = sync.OnceFunc(func() { close(r.stopped) })
	line := newLine(1)
	if c.Together {
		line = newLine(len(chosen))
	}
	for _, how := range chosen {
		r.races = append(r.races, &race{run: r, line: line, how: how, phase: waiting})
	}
	return r
}

// hold holds the races and makes the report.
func (r *run) hold(ctx context.Context, lab Lab) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		select {
		case <-r.stopped:
			cancel(errStopped)
		case <-over:
		}
	})
	blank := lab.Blank(r.choice)
	r.race(ctx, lab)
	close(over)
	all.Wait()
	r.conclude(blank, ctx.Err() != nil)
}

// race holds them, all at once or one after the other.
func (r *run) race(ctx context.Context, lab Lab) {
	var all sync.WaitGroup
	for _, one := range r.races {
		all.Go(func() { one.hold(ctx, lab, r.choice) })
		if !r.choice.Together {
			all.Wait()
		}
	}
	all.Wait()
}

// conclude fills the report with the races that were held to their end.
func (r *run) conclude(blank report.Report, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase, r.report = done, blank
	if cut {
		r.phase = ended
	}
	for _, one := range r.races {
		switch one.phase {
		case done:
			if r.choice.Together && len(r.races) > 1 {
				one.result.Notes = append(one.result.Notes, "raced at the same time as the other strategies, which slows each of them")
			}
			r.report.Strategies = append(r.report.Strategies, one.result)
		case failed:
			r.phase = failed
			r.report.NotRun = append(r.report.NotRun, report.NotRun{Name: one.how.Name, Reason: one.err.Error()})
		default:
			r.report.NotRun = append(r.report.NotRun, report.NotRun{Name: one.how.Name, Reason: "the run was stopped"})
		}
	}
}

func (r *run) over() bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.phase != running
}

// outcome returns the report, if there is something in it.
func (r *run) outcome() (report.Report, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report, r.phase != running && len(r.report.Strategies) > 0
}

package ui

import (
	"context"

	"example.com/shop/loadtest/buyers"
	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/shopclient"
)

// race is that of one strategy in a run, whose mutex guards what changes.
type race struct {
	run  *run
	line *line
	how  shopclient.Strategy

	phase  string
	tally  *buyers.Tally // once buyers set out
	result report.Strategy
	err    error
}

func (r *race) hold(ctx context.Context, lab Lab, c Choice) {
	defer r.line.leave()
	if ctx.Err() != nil {
		r.enter(ended)
		return
	}
	r.enter(opening)
	result, err := lab.Race(ctx, c, r.how, r)
	r.run.mu.Lock()
	defer r.run.mu.Unlock()
	switch {
	case err == nil:
		r.phase, r.result = done, result
	case ctx.Err() != nil:
		r.phase = ended
	default:
		r.phase, r.err = failed, err
	}
}

func (r *race) enter(phase string) {
	r.run.mu.Lock()
	defer r.run.mu.Unlock()
	r.phase = phase
}

// Connecting, Ready and Answered make it the Watcher of itself.
func (r *race) Connecting(tally *buyers.Tally) {
	r.run.mu.Lock()
	defer r.run.mu.Unlock()
	r.phase, r.tally = connecting, tally
}

// Ready waits until those that race at the same time are ready, too.
func (r *race) Ready(ctx context.Context) {
	r.line.await(ctx)
	r.enter(racing)
}

// Answered means that the rest is reading books.
func (r *race) Answered() { r.enter(checking) }

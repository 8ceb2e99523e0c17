package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/logs"
	"example.com/shop/internal/metrics"
)

// job is work that one instance does at a time, every so often.
type job struct {
	name    string
	every   time.Duration
	retry   time.Duration                                    // after a run that failed; 0: every
	due     func(ctx context.Context) (bool, error)          // asked before each run; nil: it always is
	run     func(ctx context.Context) (items int, err error) // how many it dealt with, also if it failed
	locker  *lock.Locker
	metrics *metrics.Job
	log     *slog.Logger
}

// askAgain is how long a job waits at most when it cannot have its lease: one that
// runs every ten minutes must not stand still for as long because Redis was away.
const askAgain = time.Second

// giveWay is for how long at least an instance on which a run failed leaves the lease
// to others: one that waits for it needs a moment to take it.
const giveWay = time.Second

// loop stands in line for the job's lease and works while it holds it, until ctx
// ends. An instance that ends gives the lease to the next one; one that is killed
// leaves it to the next when its TTL is over. One on which a run failed gives it up,
// too: its database may be the only one that does not answer. It stands in line again
// when it would have tried again, so that one that is alone loses nothing by it.
func (j job) loop(ctx context.Context) {
	for ctx.Err() == nil {
		var aside time.Duration
		err := j.locker.Do(ctx, "job:"+j.name, func(ctx context.Context, _ *lock.Lease) error {
			j.log.Info("job runs here", "job", j.name)
			j.metrics.Leads(true)
			defer j.metrics.Leads(false)
			aside = j.work(ctx)
			return context.Cause(ctx)
		})
		switch {
		case ctx.Err() != nil:
			j.log.Debug("job ends here", "job", j.name)
		case errors.Is(err, lock.ErrTimeout): // another instance has it: on with the wait
		case err == nil:
			j.log.Debug("job is left to others", "job", j.name, "for", aside)
			pause(ctx, aside)
		default:
			j.log.Warn("job does not run here", "job", j.name, "error", err)
			pause(ctx, max(aside, min(j.every, askAgain)))
		}
	}
}

// work runs the job, if it is due, at once and then every so often, until ctx ends or
// a run fails. Then it returns for how long to leave the job to others; a run that was
// ended from outside has not failed.
func (j job) work(ctx context.Context) (aside time.Duration) {
	for ctx.Err() == nil {
		if again := j.once(ctx); again > 0 && ctx.Err() == nil {
			return max(again, giveWay)
		}
		pause(ctx, j.every)
	}
	return 0
}

// once runs the job if it is due. If that fails it is told, and once returns after how
// long to try again here.
func (j job) once(ctx context.Context) (again time.Duration) {
	if j.due != nil {
		due, err := j.due(ctx)
		if err != nil {
			j.tell(ctx, 0, err, 0)
			return j.every
		}
		if !due {
			j.log.Debug("job is not due", "job", j.name)
			return 0
		}
	}
	began := time.Now()
	items, err := j.run(ctx)
	j.tell(ctx, items, err, time.Since(began))
	if err != nil {
		return cmp.Or(j.retry, j.every)
	}
	return 0
}

// tell says in the log and in metrics what a run did. One that found nothing is no
// news, and one that was ended is no fault.
func (j job) tell(ctx context.Context, items int, err error, took time.Duration) {
	j.metrics.Ran(items, err)
	level, line := slog.LevelDebug, []slog.Attr{
		slog.String("job", j.name), slog.Int("items", items), logs.Took(took),
	}
	if items > 0 {
		level = slog.LevelInfo
	}
	if err != nil {
		line = append(line, slog.Any("error", err))
		if ctx.Err() == nil {
			level = slog.LevelError
		}
	}
	j.log.LogAttrs(ctx, level, "job ran", line...)
}

// jobs are those of a shop. The zero value has none.
type jobs struct {
	stops   []context.CancelFunc
	running sync.WaitGroup
}

// start lets a job run until end, whatever becomes of the context that the shop
// was started with.
func (all *jobs) start(j job) {
	ctx, stop := context.WithCancel(context.Background())
	all.stops = append(all.stops, stop)
	all.running.Go(func() { j.loop(ctx) })
}

// end lets all give their leases back, and returns at once. The channel is closed
// when they have, which takes as long as a database or Redis that hangs is waited
// for.
func (all *jobs) end() (ended <-chan struct{}) {
	for _, stop := range all.stops {
		stop()
	}
	done := make(chan struct{})
	go func() {
		all.running.Wait()
		close(done)
	}()
	return done
}

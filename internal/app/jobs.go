package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/observe"
	"example.com/shop/internal/order"
)

// job is work that one instance does at a time. Two instances at once, as after a lost lease, do no harm: each job is
// idempotent, and the lease only saves work.
type job struct {
	name  string
	every time.Duration
	run   func(ctx context.Context) (items int, err error) // the items it dealt with, even if it failed
}

const expiryJob = "expiry"

// expire expires the orders that were not paid in time.
func (p *Parts) expire(ctx context.Context) (expired int, err error) {
	const (
		atOnce = 512
		most   = 10 * time.Second // of one run, so that its success is seen; the next follows soon
	)
	for began := time.Now(); ; {
		n, err := p.orders.ExpireDue(ctx, atOnce)
		expired += n
		if err != nil || n < atOnce || time.Since(began) > most {
			return expired, err
		}
	}
}

const refundsJob = "refunds"

// refunds reports for how long refused payments have waited for their refunds, which the payment service makes.
func (p *Parts) refunds(ctx context.Context) (int, error) {
	lag, err := p.Database.RefundLag(ctx)
	if err == nil {
		p.metrics.Job(refundsJob).Lags(lag)
	}
	return 0, err
}

// off is the time of a daily job that does not run.
const off = "off"

// parseDaily reads a time of day such as 03:00, as the time since midnight.
func parseDaily(at string) (time.Duration, error) {
	t, err := time.Parse("15:04", at)
	if err != nil && at != off {
		return 0, fmt.Errorf("reconcile-at: %q: want a time of day in UTC such as 03:00, or %s", at, off)
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}

const reconcileJob = "reconcile"

// reconcile audits all SKUs once a day, from Settings.ReconcileAt on by the database's clock. It logs differences and
// changes nothing: an operator has to decide what is right. Rows in the database say that the day's audit was begun in this
// hour, and that it was made: one that failed is made again in the next hour, by any instance, since the server may still be
// at its statements.
func (p *Parts) reconcile(ctx context.Context) (differences int, err error) {
	at, _ := parseDaily(p.ReconcileAt) // the settings are valid
	now, err := p.Database.Now(ctx)
	if err != nil {
		return 0, err
	}
	now = now.Add(-at)
	day, try := now.Format(time.DateOnly), reconcileJob+now.Format(", hour 15")
	made, err := p.Database.HasRun(ctx, reconcileJob, day)
	if err != nil || made {
		return 0, err
	}
	first, err := p.Database.NoteRun(ctx, try, day)
	if err == nil && !first {
		err = errors.New("the audit that was begun in this hour has not ended well; the next hour has another")
	}
	if err != nil {
		return 0, err
	}
	differences, err = p.audit(ctx)
	if err == nil {
		_, err = p.Database.NoteRun(context.WithoutCancel(ctx), reconcileJob, day)
	}
	return differences, err
}

// audit returns the number of differences, and logs the first 20 of them.
func (p *Parts) audit(ctx context.Context) (differences int, err error) {
	// The time limit is there because a run keeps a snapshot of the database open.
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	began, log := time.Now(), p.log.With("job", reconcileJob)
	report, err := httpapi.Audit(ctx, p.Database, "")
	for _, d := range report.Differences[:min(20, len(report.Differences))] {
		log.Error("accounts differ", "invariant", d.Invariant, "sku", d.SKU, "order_id", d.OrderID, "detail", d.Detail)
	}
	if err != nil {
		return report.Found, fmt.Errorf("audit: %w", err)
	}
	level := slog.LevelInfo
	if !report.OK {
		level = slog.LevelError
	}
	log.Log(ctx, level, "accounts compared", "skus", report.Compared, "differences", report.Found, observe.Took(time.Since(began)))
	return report.Found, nil
}

// startJobs runs the jobs until stop is called. ended is closed when all have released their leases, which may take as
// long as the timeouts of a database or Redis that does not answer.
func (p *Parts) startJobs() (stop func(), ended <-chan struct{}) {
	list := []job{
		{expiryJob, cmp.Or(p.SweepEvery, time.Second), p.expire},
		{"keys", 10 * time.Minute, func(ctx context.Context) (int, error) { return p.Database.PurgeKeys(ctx, p.KeepKeys) }},
		{refundsJob, time.Minute, p.refunds},
	}
	if p.ReconcileAt != off {
		list = append(list, job{reconcileJob, time.Minute, p.reconcile})
	}
	ctx, stop := context.WithCancel(context.Background()) // not that of Start, which may end before the shop
	var running sync.WaitGroup
	for _, j := range list {
		running.Go(func() { p.standBy(ctx, j) })
	}
	all := make(chan struct{})
	go func() {
		running.Wait()
		close(all)
	}()
	return stop, all
}

// standBy tries to get the job's lease until ctx ends, and runs the job while this instance has it. After a run that
// failed, the instance leaves the job to others for a while, since the cause may be local.
func (p *Parts) standBy(ctx context.Context, j job) {
	const pause = time.Second // between tries
	log := p.log.With("job", j.name)
	outage := &observe.Outage{Log: log, Message: "job fails here"}
	for ctx.Err() == nil {
		lease, err := p.locker.TryAcquire(ctx, "job:"+j.name)
		switch {
		case err == nil:
			if failed := j.lead(lease, p.metrics.Job(j.name), log, outage); failed {
				_ = order.Pause(ctx, 2*max(j.every, pause))
			}
		case !errors.Is(err, lock.ErrHeld) && ctx.Err() == nil:
			outage.Note(ctx, err)
		}
		_ = order.Pause(ctx, pause)
	}
}

// lead runs the job until its lease ends or a run fails.
func (j job) lead(lease *lock.Lease, metrics *observe.Job, log *slog.Logger, outage *observe.Outage) (failed bool) {
	defer lease.Release() //nolint:errcheck // the locker retries it in the background
	log.Info("job runs here")
	defer metrics.Left()
	for ctx := lease.Context(); ctx.Err() == nil; _ = order.Pause(ctx, j.every) {
		began := time.Now()
		items, err := j.run(ctx)
		metrics.Ran(items, err)
		if err != nil && ctx.Err() != nil {
			return false // the lease was lost, or the shop shuts down
		}
		outage.Note(ctx, err)
		if items > 0 {
			log.Info("job ran", "items", items, observe.Took(time.Since(began)))
		}
		if err != nil {
			return true
		}
	}
	return false
}

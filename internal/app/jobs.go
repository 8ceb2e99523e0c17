package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/observe"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// job is work for one instance at a time. Two at once, as after a lost lease, do no harm: each job is idempotent.
type job struct {
	name  string
	every time.Duration
	run   func(ctx context.Context) (items int, err error) // items counts the finished ones, even with an error
}

const expiryJob = "expiry"

// expire expires the orders that were not paid in time.
func (p *Parts) expire(ctx context.Context) (expired int, err error) {
	const (
		atOnce = 512
		most   = 10 * time.Second // of one run, so that the metrics show its success; the next run follows soon
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

// refunds reports for how long refused payments have waited for their refunds by the payment service.
func (p *Parts) refunds(ctx context.Context) (int, error) {
	lag, err := p.Database.RefundLag(ctx)
	if err == nil {
		p.metrics.Job(refundsJob).Lags(lag)
	}
	return 0, err
}

// off instead of a time of day switches a daily job off.
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
// changes nothing: an operator has to decide which record is right. One row in the database says that the audit was
// begun in this hour, and another that the audit of the day is complete. A failed audit is repeated in the next hour,
// by any instance: until then, the server may still execute its statements.
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
		err = errors.New("the audit of this hour has not been completed; it is repeated in the next hour")
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
	// An audit that takes longer fails, and its alert fires.
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	began, log := time.Now(), p.log.With("job", reconcileJob)
	report := stock.NewReport()
	err = p.Database.Audit(ctx, "", report.AddAccount, report.AddDifference)
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

// startJobs runs the jobs until stop is called. ended is closed when all jobs have released their leases. If the
// database or Redis does not answer, this takes as long as their timeouts.
func (p *Parts) startJobs() (stop func(), ended <-chan struct{}) {
	list := []job{
		{expiryJob, cmp.Or(p.SweepEvery, time.Second), p.expire},
		{"keys", 10 * time.Minute, func(ctx context.Context) (int, error) { return p.Database.PurgeKeys(ctx, p.KeepKeys) }},
		{refundsJob, time.Minute, p.refunds},
	}
	if p.ReconcileAt != off {
		list = append(list, job{reconcileJob, time.Minute, p.reconcile})
	}
	ctx, stop := context.WithCancel(context.Background()) // the context of Start may end before the shop
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

// standBy tries to get the job's lease until ctx ends, and runs the job while this instance holds the lease. After a
// failed run, the instance leaves the job to others for a while, because the cause may be local.
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

package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"example.com/shop/internal/logs"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

const (
	reconcileLook = time.Minute // between looks whether it is time
	reconcileTold = 20          // differences that are logged one by one

	// reconcileBound is for one run, which keeps a snapshot open. A MySQL whose
	// answer to one statement does not begin within readTimeout, of the DSN or else
	// two minutes, ends it before.
	reconcileBound = time.Hour
)

// reconciliation is the job that audits all SKUs every night. It tells what
// differs and changes nothing: what is right is for people to find out.
type reconciliation struct {
	daily
	log *slog.Logger
}

func (p *parts) reconciliation(s Settings) job {
	at, _ := parseDaily(s.ReconcileAt) // the settings are valid
	r := &reconciliation{daily: daily{job: "reconcile", at: at, database: p.database}, log: s.log()}
	return job{
		name:    r.job,
		every:   reconcileLook,
		retry:   retryDaily,
		due:     r.due,
		run:     r.run,
		locker:  p.lockers[order.RedisLock],
		metrics: p.metrics.Job(r.job),
		log:     r.log,
	}
}

// run returns the number of differences.
func (r *reconciliation) run(ctx context.Context) (differences int, err error) {
	ctx, cancel := context.WithTimeout(ctx, reconcileBound)
	defer cancel()
	began := time.Now()
	now, err := store.Now(ctx, r.database.db)
	if err != nil {
		return 0, err
	}
	var skus, lines, units int64
	err = r.database.Orders().Audit(ctx, "",
		func(a stock.Account) error {
			skus, lines, units = skus+1, lines+a.Orders, units+a.OrderedUnits
			return nil
		},
		func(d stock.Difference) error {
			if differences++; differences <= reconcileTold {
				r.log.Error("accounts differ", "job", r.job, "invariant", d.Invariant, "sku", d.SKU, "order_id", d.OrderID, "detail", d.Detail)
			}
			return nil
		})
	if err != nil {
		return differences, fmt.Errorf("audit: %w", err)
	}
	level := slog.LevelInfo
	if differences > 0 {
		level = slog.LevelError
	}
	r.log.Log(ctx, level, "accounts compared", "job", r.job, "skus", skus, "lines", lines, "units", units,
		"differences", differences, logs.Took(time.Since(began)))
	return differences, r.ran(ctx, now)
}

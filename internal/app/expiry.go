package app

import (
	"context"

	"example.com/shop/internal/order"
)

// sweep is how many orders one run of the expiry expires at most.
const sweep = 500

// expiry is the job that expires the orders that were not paid in time. Two at
// once, as after a lease that ran out, do no harm: an order's row lets one of
// them credit its units. The lease spares the database the others.
func (p *parts) expiry(s Settings, orders *order.Service) job {
	return job{
		name:    "expiry",
		every:   s.SweepEvery,
		run:     func(ctx context.Context) (int, error) { return expireDue(ctx, orders) },
		locker:  p.lockers[order.RedisLock],
		metrics: p.metrics.Job("expiry"),
		log:     s.log(),
	}
}

// expireDue goes on until nothing is due.
func expireDue(ctx context.Context, orders *order.Service) (expired int, err error) {
	for {
		n, err := orders.ExpireDue(ctx, sweep)
		expired += n
		if err != nil || n < sweep {
			return expired, err
		}
	}
}

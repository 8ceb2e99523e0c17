package app

import (
	"context"
	"time"

	"example.com/shop/internal/order"
)

// purgeEvery is how much longer than Settings.KeepKeys a key may stay.
const purgeEvery = 10 * time.Minute

// keys is the job that deletes the idempotency keys whose time is over. Two at
// once do no harm: a key is deleted once.
func (p *parts) keys(s Settings) job {
	orders := p.database.Orders()
	return job{
		name:    "keys",
		every:   purgeEvery,
		run:     func(ctx context.Context) (int, error) { return orders.PurgeKeys(ctx, s.KeepKeys) },
		locker:  p.lockers[order.RedisLock],
		metrics: p.metrics.Job("keys"),
		log:     s.log(),
	}
}

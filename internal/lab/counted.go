package lab

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
)

// CountLock is what Offer.Lock has for a strategy whose buyers take units from a count in Redis.
const CountLock = "count"

// counted is such a strategy. The counts of a request that is stepped can be lost, as by FLUSHALL.
type counted struct {
	order.Strategy
	redis redis.UniversalClient
}

// Sell implements order.Strategy.
func (c counted) Sell(ctx context.Context, d *order.Draft) error {
	var keys []string
	for _, line := range d.Lines {
		keys = append(keys, strategy.CountKeys(line.SKU)...)
	}
	workIn(ctx).of().asksFor(keys, c, CountLost)
	return c.Strategy.Sell(ctx, d)
}

// Holder is not supported: many orders hold units of one count.
func (c counted) Holder(context.Context, string) (lock.Holder, error) {
	return lock.Holder{}, errors.ErrUnsupported
}

// ForceRelease deletes a count, or returns lock.ErrLost if there is none.
func (c counted) ForceRelease(ctx context.Context, key string) (lock.Holder, error) {
	deleted, err := c.redis.Del(ctx, key).Result()
	if err == nil && deleted == 0 {
		err = lock.ErrLost
	}
	return lock.Holder{}, err
}

package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"example.com/shop/internal/order/orderhttp"
)

// countTimeout is how long Redis has to count a request: a slow one must not
// delay orders by more.
const countTimeout = 250 * time.Millisecond

// burst is for how many seconds a buyer may have saved up requests: a program that
// sends one order fifty times at once, to be sure of it, is no reason for a 429.
const burst = 5

// limiter counts a buyer's requests in Redis, for all instances together; nil, an
// interface that holds nothing, without a limit.
func (p *parts) limiter(s Settings) orderhttp.Limiter {
	if s.RateLimit == 0 {
		return nil
	}
	return &limiter{
		rate:   redis_rate.NewLimiter(p.redis),
		limit:  redis_rate.Limit{Rate: s.RateLimit, Burst: burst * s.RateLimit, Period: time.Second},
		closed: s.RateLimitFailsClosed,
		log:    s.log(),
	}
}

type limiter struct {
	rate   *redis_rate.Limiter
	limit  redis_rate.Limit
	closed bool
	log    *slog.Logger
	outage outage
}

// Allow counts a request. It errs only if the limit fails closed.
func (l *limiter) Allow(ctx context.Context, buyer string) (time.Duration, error) {
	counting, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	result, err := l.rate.Allow(counting, "buyer:"+buyer, l.limit)
	if err == nil {
		if l.outage.ended() {
			l.log.Info("requests of buyers are counted again")
		}
		return result.RetryAfter, nil
	}
	// A client that went away says nothing about Redis. Each outage is told once.
	if ctx.Err() == nil && l.outage.began() {
		l.log.Warn("requests of buyers cannot be counted", "refused", l.closed, "error", err)
	}
	if l.closed {
		return 0, fmt.Errorf("count in redis: %w", err)
	}
	return 0, nil
}

// calm is how long nothing must have failed for an outage to be over: a Redis that
// answers every other request has one, and not one for each.
const calm = 10 * time.Second

// outage tells when one begins and when it is over. It may be used by many
// goroutines at once.
type outage struct {
	mu     sync.Mutex
	failed time.Time // last, in the outage that there is; zero: none
}

// began is called for what failed, and reports whether that began an outage.
func (o *outage) began() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := o.failed.IsZero()
	o.failed = time.Now()
	return first
}

// ended is called for what went well, and reports whether that ended an outage.
func (o *outage) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed.IsZero() || time.Since(o.failed) < calm {
		return false
	}
	o.failed = time.Time{}
	return true
}

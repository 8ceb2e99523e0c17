package httpapi

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/observe"
)

const (
	// burstSeconds is the size of a bucket, in seconds of requests: with ten per second, a program that sends one order
	// fifty times at once gets no 429.
	burstSeconds = 5

	// refusalPause is the time before a buyer with too many requests in progress is refused one more: connections that ask
	// again at once would take the CPU from other buyers.
	refusalPause = time.Second

	countTimeout = 100 * time.Millisecond // for an answer of Redis
	countPause   = time.Second            // between a failure of Redis and the next request to it
)

// Limiter bounds what one buyer asks for: the requests that are in progress in this instance, and the changes per second.
//
// It counts changes in two token buckets for each buyer. One is in this instance, so that a flood costs no round
// trips and there is a limit while Redis does not answer; the other is in Redis, for all instances together. Without a
// Redis there is only the first. It may be used by many goroutines at once.
type Limiter struct {
	limit    redis_rate.Limit
	interval time.Duration       // in which a bucket fills by one token
	rate     *redis_rate.Limiter // nil: this instance is alone
	outage   observe.Outage      // of Redis

	mu       sync.Mutex
	inFlight map[string]int       // by buyer, the requests in progress; no entry for 0
	full     map[string]time.Time // by buyer, when the bucket of this instance is full again
	sweep    int                  // size of full at which full buckets are removed from it
	answered time.Time            // when Redis last did
	failed   time.Time            // when Redis was last asked, and failed; zero while it answers
}

// NewLimiter returns a Limiter that counts in this Redis for all instances together, or, if client is nil, in this
// instance alone. A buyer may send perSecond changes per second, and five times as many in a burst. As many requests as in
// a burst, reads among them, may be in progress at a time.
func NewLimiter(client redis.UniversalClient, perSecond int, log *slog.Logger) *Limiter {
	l := &Limiter{
		limit:    redis_rate.Limit{Rate: perSecond, Burst: burstSeconds * perSecond, Period: time.Second},
		interval: time.Second / time.Duration(perSecond),
		outage:   observe.Outage{Log: log, Message: "requests of buyers cannot be counted in redis"},
		inFlight: map[string]int{},
		full:     map[string]time.Time{},
	}
	if client != nil {
		l.rate = redis_rate.NewLimiter(client)
	}
	return l
}

// enter counts a request of the buyer until leave, or returns errInFlight.
func (l *Limiter) enter(buyer string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight[buyer] >= l.limit.Burst {
		return errInFlight
	}
	l.inFlight[buyer]++
	return nil
}

// leave ends what enter began.
func (l *Limiter) leave(buyer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight[buyer]--; l.inFlight[buyer] == 0 {
		delete(l.inFlight, buyer)
	}
}

// allow takes a token from each of the buyer's buckets, or returns an errRateLimit if one of them has none.
func (l *Limiter) allow(ctx context.Context, buyer string) error {
	if err := l.take(buyer); err != nil || l.rate == nil {
		return err
	}
	return l.count(ctx, buyer)
}

// take takes a token from the bucket in this instance. A bucket is stored as the time at which it will be full; a full
// bucket need not be stored.
func (l *Limiter) take(buyer string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, full := time.Now(), l.full[buyer]
	if full.Before(now) {
		full = now
	}
	if wait := full.Add(l.interval).Sub(now) - burstSeconds*time.Second; wait > 0 {
		return refusedError{error: errRateLimit, wait: wait}
	}
	if len(l.full) >= l.sweep {
		for name, at := range l.full {
			if at.Before(now) {
				delete(l.full, name)
			}
		}
		l.sweep = max(1024, 2*len(l.full))
	}
	l.full[buyer] = full.Add(l.interval)
	return nil
}

// count takes a token from the bucket in Redis. After Redis has failed, only the bucket of this instance limits, and no
// request waits for Redis until it answers again: once in a second one asks in the background.
func (l *Limiter) count(ctx context.Context, buyer string) error {
	l.mu.Lock()
	away := !l.failed.IsZero()
	again := away && time.Since(l.failed) >= countPause
	if again {
		l.failed = time.Now()
	}
	l.mu.Unlock()
	switch {
	case again:
		go func() { _ = l.ask(context.WithoutCancel(ctx), buyer) }()
	case !away:
		return l.ask(ctx, buyer)
	}
	return nil
}

// ask returns an errRateLimit if Redis answers that the bucket is empty. After Redis' clock stepped back, a buyer's bucket
// there begins anew.
func (l *Limiter) ask(ctx context.Context, buyer string) error {
	asked := time.Now()
	asking, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	result, err := l.rate.Allow(asking, "buyer:"+buyer, l.limit)
	if err != nil && ctx.Err() != nil { // no failure of Redis
		return ctx.Err()
	}
	l.note(ctx, asked, err)
	switch {
	case err != nil:
	case result.RetryAfter > time.Second: // no token takes longer: the clock of Redis has stepped back
		_ = l.rate.Reset(asking, "buyer:"+buyer)
	case result.Allowed == 0:
		return refusedError{error: errRateLimit, wait: result.RetryAfter}
	}
	return nil
}

// note records what came of asking Redis. That a crowd waits too long is no failure while Redis answers some; what was asked
// before a failure does not end it.
func (l *Limiter) note(ctx context.Context, asked time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil && asked.Before(l.answered), err == nil && asked.Before(l.failed):
		return
	case err != nil:
		l.failed = time.Now()
	default:
		l.answered, l.failed = time.Now(), time.Time{}
	}
	l.outage.Note(ctx, err)
}

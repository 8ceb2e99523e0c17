package httpapi

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"example.com/shop/internal/observe"
)

const (
	// burst is the size of a bucket, in time: with ten requests per second, fifty may be sent at once.
	burst = 5 * time.Second

	// refusalPause delays the refusal of a buyer with too many requests in progress. Otherwise, connections that ask
	// again at once would take the CPU from other buyers.
	refusalPause = time.Second

	countTimeout = 100 * time.Millisecond // of a request to Redis
	countPause   = time.Second            // between a failure of Redis and the next request to it
)

// Limiter limits the requests of one buyer: those in progress in this instance, and the changes per second.
//
// It counts changes in two token buckets for each buyer. The local bucket, in this instance, refuses a flood without
// round trips, and limits buyers while Redis does not answer. The shared bucket, in Redis, is for all instances
// together. An instance takes tokens for several changes at a time from the shared bucket, so that most buyers never
// wait for Redis. Without a Redis there is only the local bucket. A Limiter may be used by many goroutines at once.
type Limiter struct {
	limit  redis_rate.Limit
	shared *redis_rate.Limiter // nil: this instance is alone
	outage observe.Outage      // of Redis

	mu       sync.Mutex
	inFlight map[string]int     // by buyer, the requests in progress; no entry for 0
	buckets  map[string]*bucket // by buyer; sweep removes those that are idle
	sweep    int                // number of buckets at which those that are idle are removed
	answered time.Time          // when Redis last answered
	failed   time.Time          // when Redis was last asked and failed; zero while it answers
}

type bucket struct {
	local      *rate.Limiter
	used       time.Time // when the last token was taken
	unreported int       // changes for which no token was taken from Redis
	asking     int       // requests to Redis in progress
}

// idle reports whether the bucket has been full for as long as a burst: so has the one in Redis, if the buyer has sent
// nothing to another instance.
func (b *bucket) idle(now time.Time) bool { return now.Sub(b.used) > 2*burst }

// NewLimiter returns a Limiter that counts in this Redis for all instances together or, if client is nil, for this
// instance only. A buyer may send perSecond changes per second, and five times as many in a burst. If a burst goes to
// several instances, each instance may admit a quarter of perSecond more. At a time, a buyer may have as many requests
// in progress, reads included, as a burst has.
func NewLimiter(client redis.UniversalClient, perSecond int, log *slog.Logger) *Limiter {
	l := &Limiter{
		limit:    redis_rate.Limit{Rate: perSecond, Burst: int(burst/time.Second) * perSecond, Period: time.Second},
		outage:   observe.Outage{Log: log, Message: "requests of buyers cannot be counted in redis"},
		inFlight: map[string]int{},
		buckets:  map[string]*bucket{},
	}
	if client != nil {
		l.shared = redis_rate.NewLimiter(client)
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

// leave ends the request that enter counted.
func (l *Limiter) leave(buyer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight[buyer]--; l.inFlight[buyer] == 0 {
		delete(l.inFlight, buyer)
	}
}

// allow takes a token from each of the buyer's buckets, or returns errRateLimit if one of them has none.
//
// After Redis has failed, only the local bucket limits, and no request waits for Redis. Once a second, a request asks
// Redis in the background until Redis answers again.
func (l *Limiter) allow(ctx context.Context, buyer string) error {
	b, report, wait, err := l.take(buyer)
	if err != nil || report == 0 {
		return err
	}
	if !wait {
		go func() { _ = l.ask(context.WithoutCancel(ctx), buyer, b, report) }()
		return nil
	}
	return l.ask(ctx, buyer, b, report)
}

// take takes a token from the local bucket. It returns the number of tokens to take from Redis now, and whether to wait
// for Redis.
func (l *Limiter) take(buyer string) (b *bucket, report int, wait bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	b, found := l.buckets[buyer]
	if !found || b.idle(now) {
		b = &bucket{local: rate.NewLimiter(rate.Limit(l.limit.Rate), l.limit.Burst)}
		l.buckets[buyer] = b
	}
	if !b.local.AllowN(now, 1) {
		return nil, 0, false, errRateLimit
	}
	b.used = now
	if len(l.buckets) > l.sweep {
		maps.DeleteFunc(l.buckets, func(_ string, b *bucket) bool { return b.idle(now) })
		l.sweep = max(1024, 2*len(l.buckets))
	}
	b.unreported++
	down := !l.failed.IsZero()
	probe := down && now.Sub(l.failed) >= countPause
	switch {
	case l.shared == nil, down && !probe:
		b.unreported = 0
	case probe, b.unreported > l.limit.Rate/4, b.asking > 0:
		report, b.unreported = b.unreported, 0
		b.asking++
	}
	if probe {
		l.failed = now
	}
	return b, report, !down, nil
}

// ask takes tokens from the bucket in Redis. The last token is for a request that waits: if there is none left for it,
// ask returns errRateLimit. Tokens that ask cannot take stay unreported. If the clock of Redis has stepped back, ask
// resets the buyer's bucket in Redis.
func (l *Limiter) ask(ctx context.Context, buyer string, b *bucket, tokens int) error {
	asked, unreported := time.Now(), tokens-1
	asking, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	result, err := l.shared.AllowN(asking, "buyer:"+buyer, l.limit, tokens)
	if err == nil && result.Allowed == tokens {
		unreported = 0
	} else if err == nil && tokens > 1 { // there are not enough tokens
		result, err = l.shared.Allow(asking, "buyer:"+buyer, l.limit)
	}
	if err == nil && result.RetryAfter > time.Second { // a token takes less time: the clock of Redis has stepped back
		_ = l.shared.Reset(asking, "buyer:"+buyer)
		unreported, result.Allowed = 0, 1
	}
	l.note(ctx, b, unreported, asked, err)
	switch {
	case err != nil:
		return ctx.Err() // nil after a failure of Redis
	case result.Allowed == 0:
		return errRateLimit
	}
	return nil
}

// note records the outcome of a request to Redis. A request that ran into its timeout does not count as a failure if
// Redis has answered a later one, nor does the end of ctx. An answer to a request from before a failure does not end
// the outage.
func (l *Limiter) note(ctx context.Context, b *bucket, unreported int, asked time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.unreported += unreported
	b.asking--
	switch {
	case err != nil && (ctx.Err() != nil || asked.Before(l.answered)), err == nil && asked.Before(l.failed):
		return
	case err != nil:
		l.failed = time.Now()
	default:
		l.answered, l.failed = time.Now(), time.Time{}
	}
	l.outage.Note(ctx, err)
}

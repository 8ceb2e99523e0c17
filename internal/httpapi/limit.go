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
// trips and there is a limit while Redis does not answer; the other is in Redis, for all instances together. An instance
// takes tokens from that one for several changes at a time, so that most buyers never wait for Redis. Without a Redis there
// is only the first. It may be used by many goroutines at once.
type Limiter struct {
	limit    redis_rate.Limit
	interval time.Duration       // in which a bucket fills by one token
	most     int                 // of a buyer's changes that Redis does not know of yet
	rate     *redis_rate.Limiter // nil: this instance is alone
	outage   observe.Outage      // of Redis

	mu       sync.Mutex
	inFlight map[string]int    // by buyer, the requests in progress; no entry for 0
	buckets  map[string]bucket // by buyer, of this instance; a full one may be missing
	sweep    int               // number of buckets at which full ones are removed
	answered time.Time         // when Redis last did
	failed   time.Time         // when Redis was last asked, and failed; zero while it answers
}

type bucket struct {
	full   time.Time // when it is full again
	untold int       // changes that Redis does not know of yet
}

// NewLimiter returns a Limiter that counts in this Redis for all instances together, or, if client is nil, in this
// instance alone. A buyer may send perSecond changes per second, and five times as many in a burst; if they go to
// several instances, each may let a quarter of perSecond more through in that burst. As many requests as in a burst, reads
// among them, may be in progress at a time.
func NewLimiter(client redis.UniversalClient, perSecond int, log *slog.Logger) *Limiter {
	l := &Limiter{
		limit:    redis_rate.Limit{Rate: perSecond, Burst: burstSeconds * perSecond, Period: time.Second},
		interval: time.Second / time.Duration(perSecond),
		most:     perSecond / 4,
		outage:   observe.Outage{Log: log, Message: "requests of buyers cannot be counted in redis"},
		inFlight: map[string]int{},
		buckets:  map[string]bucket{},
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
	untold, err := l.take(buyer)
	if err != nil || untold <= l.most || l.rate == nil {
		return err
	}
	return l.count(ctx, buyer, untold)
}

// take takes a token from the bucket in this instance, and returns for how many changes there is none from Redis.
func (l *Limiter) take(buyer string) (untold int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, b := time.Now(), l.buckets[buyer]
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(l.interval)
	if wait := b.full.Sub(now) - burstSeconds*time.Second; wait > 0 {
		return 0, refusedError{error: errRateLimit, wait: wait}
	}
	if len(l.buckets) >= l.sweep {
		for name, b := range l.buckets {
			if b.full.Before(now) {
				delete(l.buckets, name)
			}
		}
		l.sweep = max(1024, 2*len(l.buckets))
	}
	b.untold++
	untold = b.untold
	if untold > l.most {
		b.untold = 0
	}
	l.buckets[buyer] = b
	return untold, nil
}

// count takes tokens from the bucket in Redis. After Redis has failed, only the bucket of this instance limits, and no
// request waits for Redis until it answers again: once in a second one asks in the background.
func (l *Limiter) count(ctx context.Context, buyer string, tokens int) error {
	l.mu.Lock()
	away := !l.failed.IsZero()
	again := away && time.Since(l.failed) >= countPause
	if again {
		l.failed = time.Now()
	}
	l.mu.Unlock()
	switch {
	case again:
		go func() { _ = l.ask(context.WithoutCancel(ctx), buyer, tokens) }()
	case !away:
		return l.ask(ctx, buyer, tokens)
	}
	return nil
}

// ask returns an errRateLimit if Redis answers that the bucket is empty. After Redis' clock stepped back, a buyer's bucket
// there begins anew.
func (l *Limiter) ask(ctx context.Context, buyer string, tokens int) error {
	asked := time.Now()
	asking, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	result, err := l.rate.AllowAtMost(asking, "buyer:"+buyer, l.limit, tokens)
	if err != nil && ctx.Err() != nil { // no failure of Redis
		return ctx.Err()
	}
	l.note(ctx, asked, err)
	switch {
	case err != nil:
	case result.RetryAfter > time.Second: // no token takes longer: the clock of Redis has stepped back
		_ = l.rate.Reset(asking, "buyer:"+buyer)
	case result.Allowed == 0:
		l.owe(buyer, tokens-1)
		return refusedError{error: errRateLimit, wait: result.RetryAfter}
	default:
		l.owe(buyer, tokens-result.Allowed)
	}
	return nil
}

// owe notes changes for which Redis had no token.
func (l *Limiter) owe(buyer string, tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, known := l.buckets[buyer]; known {
		b.untold += tokens
		l.buckets[buyer] = b
	}
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

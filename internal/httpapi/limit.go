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
	rate     *redis_rate.Limiter // nil: this instance is alone
	outage   observe.Outage      // of Redis

	maxUnreported int // changes of a buyer; one more, and Redis is asked

	mu       sync.Mutex
	inFlight map[string]int    // by buyer, the requests in progress; no entry for 0
	buckets  map[string]bucket // by buyer, of this instance; missing for one who has sent nothing for long
	sweep    int               // number of buckets at which such are removed
	answered time.Time         // when Redis last did
	failed   time.Time         // when Redis was last asked, and failed; zero while it answers
}

type bucket struct {
	full       time.Time // when it is full again
	unreported int       // changes for which no token was taken from Redis
	asking     int       // requests to Redis under way
}

// NewLimiter returns a Limiter that counts in this Redis for all instances together, or, if client is nil, in this
// instance alone. A buyer may send perSecond changes per second, and five times as many in a burst; if they go to
// several instances, each may let a quarter of perSecond more through in that burst. As many requests as in a burst, reads
// among them, may be in progress at a time.
func NewLimiter(client redis.UniversalClient, perSecond int, log *slog.Logger) *Limiter {
	l := &Limiter{
		limit:    redis_rate.Limit{Rate: perSecond, Burst: burstSeconds * perSecond, Period: time.Second},
		interval: time.Second / time.Duration(perSecond),
		outage:   observe.Outage{Log: log, Message: "requests of buyers cannot be counted in redis"},
		inFlight: map[string]int{},
		buckets:  map[string]bucket{},

		maxUnreported: perSecond / 4,
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
//
// After Redis has failed, only the bucket of this instance limits, and no request waits for Redis until it answers again:
// once in a second one asks in the background.
func (l *Limiter) allow(ctx context.Context, buyer string) error {
	report, wait, err := l.take(buyer)
	if err != nil || report == 0 {
		return err
	}
	if !wait {
		go func() { _ = l.ask(context.WithoutCancel(ctx), buyer, report) }()
		return nil
	}
	return l.ask(ctx, buyer, report)
}

// take takes a token from the bucket in this instance, and returns how many to take from Redis now, and whether to wait for
// that. For a buyer who has sent nothing for long, the bucket in Redis is full again as well.
func (l *Limiter) take(buyer string) (report int, wait bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, b := time.Now(), l.buckets[buyer]
	if now.Sub(b.full) > burstSeconds*time.Second {
		b.unreported = 0
	}
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(l.interval)
	if early := b.full.Sub(now) - burstSeconds*time.Second; early > 0 {
		return 0, false, refusedError{error: errRateLimit, wait: early}
	}
	if len(l.buckets) >= l.sweep {
		for name, b := range l.buckets {
			if now.Sub(b.full) > burstSeconds*time.Second && b.asking == 0 {
				delete(l.buckets, name)
			}
		}
		l.sweep = max(1024, 2*len(l.buckets))
	}
	b.unreported++
	down := !l.failed.IsZero()
	probe := down && now.Sub(l.failed) >= countPause
	switch {
	case l.rate == nil, down && !probe:
		b.unreported = 0
	case probe, b.unreported > l.maxUnreported, b.asking > 0:
		report, b.unreported = b.unreported, 0
		b.asking++
	}
	if probe {
		l.failed = now
	}
	l.buckets[buyer] = b
	return report, !down, nil
}

// ask takes tokens from the bucket in Redis, the last one for a request that waits: it returns an errRateLimit if there is
// none for that. Tokens that it cannot take stay unreported. After Redis' clock stepped back, a buyer's bucket there begins
// anew.
func (l *Limiter) ask(ctx context.Context, buyer string, tokens int) error {
	asked, unreported := time.Now(), tokens-1
	asking, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	result, err := l.rate.AllowN(asking, "buyer:"+buyer, l.limit, tokens)
	if err == nil && result.Allowed == tokens {
		unreported = 0
	} else if err == nil && tokens > 1 { // there are not enough for all
		result, err = l.rate.Allow(asking, "buyer:"+buyer, l.limit)
	}
	if err == nil && result.RetryAfter > time.Second { // no token takes longer: the clock of Redis has stepped back
		_ = l.rate.Reset(asking, "buyer:"+buyer)
		unreported, result.Allowed = 0, 1
	}
	l.note(ctx, buyer, unreported, asked, err)
	switch {
	case err != nil:
		return ctx.Err() // nil after a failure of Redis
	case result.Allowed == 0:
		return refusedError{error: errRateLimit, wait: result.RetryAfter}
	}
	return nil
}

// note records what came of asking Redis. That a crowd waits too long is no failure while Redis answers some, nor is the end
// of ctx; what was asked before a failure does not end it.
func (l *Limiter) note(ctx context.Context, buyer string, unreported int, asked time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[buyer]
	b.unreported += unreported
	b.asking--
	l.buckets[buyer] = b
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

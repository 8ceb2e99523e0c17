package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/order"
)

const (
	// readsPerCPU is how many reads without a token run at a time, for each CPU: more make
	// none of them faster, and orders slower.
	readsPerCPU = 4

	// readShare is the part of MaxInFlight that reads without a token have: one in so many.
	readShare = 4
)

// knowBuyer identifies the buyer, before anything else of the request is read.
func (a *api) knowBuyer(c *gin.Context) {
	name, err := a.buyer(c)
	if err != nil {
		a.fail(c, err)
		return
	}
	exchangeOf(c).buyer = name
}

func (a *api) buyer(c *gin.Context) (string, error) {
	if a.Buyers == nil {
		name, given, err := header(c, headerBuyer)
		if !given {
			name = "guest"
		}
		if err == nil {
			err = order.CheckBuyer(name)
		}
		return name, err
	}
	token, err := bearer(c, "shop")
	if err != nil {
		return "", err
	}
	name, err := a.Buyers.Verify(token)
	if err == nil && order.CheckBuyer(name) != nil {
		err = fmt.Errorf("%w: its sub is no buyer's name", errBadToken)
	}
	if errors.Is(err, auth.ErrToken) || errors.Is(err, errBadToken) {
		c.Header("WWW-Authenticate", `Bearer realm="shop", error="invalid_token"`)
	}
	return name, err
}

// bearer returns the token that a request shows (RFC 6750).
func bearer(c *gin.Context, realm string) (string, error) {
	value, _, err := header(c, "Authorization")
	scheme, token, _ := strings.Cut(value, " ")
	if err != nil || !strings.EqualFold(scheme, "Bearer") || token == "" {
		c.Header("WWW-Authenticate", `Bearer realm="`+realm+`"`)
		return "", errNoToken
	}
	return token, nil
}

// limitTime ends what a request waits for, so that its answer still gets out before the
// server's write timeout.
func (a *api) limitTime(c *gin.Context) {
	if a.Timeout <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), a.Timeout)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// limitInFlight bounds how many requests are read, wait and work at a time, and with that
// every queue behind it. Health checks always get through: a busy shop is not a dead one.
func (a *api) limitInFlight(c *gin.Context) {
	if a.MaxInFlight <= 0 || IsHealthCheck(c.FullPath()) {
		return
	}
	defer a.inFlight.Add(-1)
	if a.inFlight.Add(1) > int64(a.MaxInFlight) {
		a.fail(c, errOverloaded)
		return
	}
	c.Next()
}

// limitReads lets few reads without a token run at a time, and others wait, up to a share
// of the requests in flight: reads need no token and must not slow orders down.
func (a *api) limitReads(c *gin.Context) {
	defer a.readers.Add(-1)
	if a.readers.Add(1) > max(1, int64(a.MaxInFlight/readShare)) && a.MaxInFlight > 0 {
		a.fail(c, errOverloaded)
		return
	}
	select {
	case a.reads <- struct{}{}:
		defer func() { <-a.reads }()
		c.Next()
	case <-c.Request.Context().Done():
		a.fail(c, errOverloaded)
	}
}

// countChange counts a request that changes something against its buyer's rate limit.
func (a *api) countChange(c *gin.Context) error {
	if a.Limiter == nil {
		return nil
	}
	return a.Limiter.allow(c.Request.Context(), exchangeOf(c).buyer)
}

// RateLimit is how many changes one buyer may ask for.
type RateLimit struct {
	PerSecond   int  // over all instances; five times as many in a burst
	FailsClosed bool // refuse what Redis cannot count, instead of counting it in this instance alone
	Log         *slog.Logger
}

const (
	// burstSeconds is for how long a buyer may save up requests: a program that sends one
	// order fifty times at once is no reason for a 429.
	burstSeconds = 5

	countTimeout = 250 * time.Millisecond // that Redis has, from when a count may begin
	countAgain   = time.Second            // after a failure, until Redis is asked again
	maxCounting  = 16                     // at a time: fewer than a client has connections
)

// Limiter counts requests in two token buckets for each buyer. One is in this instance, so
// that a burst costs no round trips, and the limit holds while Redis is away; the other is in
// Redis, for all instances together.
type Limiter struct {
	RateLimit
	rate     *redis_rate.Limiter
	counting chan struct{} // has an element for each count that runs

	mu    sync.Mutex
	full  map[string]time.Time // by buyer, when the bucket of this instance is full again
	sweep int                  // size at which full buckets are removed from the map
	away  time.Time            // when Redis is asked again after it failed
}

// NewLimiter returns a Limiter that counts in this Redis.
func NewLimiter(client redis.UniversalClient, limit RateLimit) *Limiter {
	return &Limiter{
		RateLimit: limit,
		rate:      redis_rate.NewLimiter(client),
		counting:  make(chan struct{}, maxCounting),
		full:      map[string]time.Time{},
	}
}

// allow counts a request. It returns a *rateError for one too many, and errUncounted for
// one that Redis cannot count, if the limit fails closed.
func (l *Limiter) allow(ctx context.Context, buyer string) error {
	if wait := l.take(buyer, time.Now()); wait > 0 {
		return &rateError{wait}
	}
	select {
	case l.counting <- struct{}{}:
		defer func() { <-l.counting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.isAway() {
		return l.uncounted()
	}
	counting, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	limit := redis_rate.Limit{Rate: l.PerSecond, Burst: burstSeconds * l.PerSecond, Period: time.Second}
	result, err := l.rate.Allow(counting, "buyer:"+buyer, limit)
	switch {
	case err != nil && ctx.Err() != nil: // says nothing about Redis
		return ctx.Err()
	case err != nil:
		l.failed(err)
		return l.uncounted()
	}
	if result.Allowed == 0 {
		return &rateError{result.RetryAfter}
	}
	return nil
}

// take takes a token from the buyer's bucket in this instance. It returns how long to wait
// for one if there is none. The bucket fills by a token in each interval, and is known by when
// it will be full; a bucket that is full is not kept.
func (l *Limiter) take(buyer string, now time.Time) (wait time.Duration) {
	interval := time.Second / time.Duration(l.PerSecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	full := l.full[buyer]
	if full.Before(now) {
		full = now
	}
	if wait := full.Add(interval).Sub(now) - burstSeconds*time.Second; wait > 0 {
		return wait
	}
	if len(l.full) >= l.sweep {
		for name, at := range l.full {
			if at.Before(now) {
				delete(l.full, name)
			}
		}
		l.sweep = max(1024, 2*len(l.full))
	}
	l.full[buyer] = full.Add(interval)
	return 0
}

func (l *Limiter) uncounted() error {
	if l.FailsClosed {
		return errUncounted
	}
	return nil
}

// isAway reports whether Redis failed to count a moment ago.
func (l *Limiter) isAway() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.away)
}

// failed notes and logs that Redis cannot count; it is not asked again for a while.
func (l *Limiter) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.After(l.away) {
		l.Log.Warn("requests of buyers cannot be counted in redis", "refused", l.FailsClosed, "error", err)
		l.away = now.Add(countAgain)
	}
}

package locksim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/internal/lock"
)

// client is a process. It has a Locker, and is the backend of this Locker: the way to the store, on which messages are
// lost or late.
type client struct {
	lock.Backend // nil: the methods below are all that a worker's Locker calls
	processPlan
	*sim
	locker *lock.Locker
	watch  watch
	staff  []*worker
	closed atomic.Pointer[time.Time] // when close was called; nil: it is open

	mu     sync.Mutex
	counts map[string]int // of calls, by kind and key
}

func newClient(s *sim, p processPlan) *client {
	c := &client{processPlan: p, sim: s, counts: make(map[string]int)}
	c.watch = watch{client: c, owners: make(map[string]*requests), tenures: make(map[string][]*tenure)}
	c.locker = lock.New(c, p.options)
	for n := range p.workers {
		c.staff = append(c.staff, &worker{client: c, who: fmt.Sprintf("%s/w%d", p.name, n+1)})
	}
	return c
}

func (c *client) log(what string, args ...any) { c.note(c.name, what, args...) }

// count returns which call of its kind this is.
func (c *client) count(what string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
	return strconv.Itoa(c.counts[what])
}

// close closes the Locker, once.
func (c *client) close() {
	now := time.Now()
	if !c.closed.CompareAndSwap(nil, &now) {
		return
	}
	c.log("close")
	if err := c.locker.Close(); err != nil {
		c.broke(c.name, "Close: %v", err)
	}
	c.log("closed")
}

// Acquire implements lock.Backend.
func (c *client) Acquire(ctx context.Context, claim lock.Claim) (lock.Grant, error) {
	sent := time.Now()
	c.watch.asks(claim)
	c.log("acquire %s by %s", claim.Key, claim.Owner)
	g, err := exchange(ctx, c, "acquire", claim, c.store.of(claim.Key).Acquire)
	c.watch.answered(claim, sent, g, err)
	if ctx.Err() == nil {
		c.log("acquire %s by %s: %+v, %v", claim.Key, claim.Owner, g, err)
	}
	return g, err
}

// Renew implements lock.Backend.
func (c *client) Renew(ctx context.Context, claim lock.Claim) (int64, error) {
	sent := time.Now()
	c.watch.renews(claim)
	fence, err := exchange(ctx, c, "renew", claim, c.store.of(claim.Key).Renew)
	if err == nil {
		c.watch.renewed(claim, sent)
	}
	c.log("renew %s by %s, sent at %v: %v", claim.Key, claim.Owner, sent.Sub(c.start), err)
	return fence, err
}

// Release implements lock.Backend.
func (c *client) Release(ctx context.Context, claim lock.Claim) error {
	c.watch.releases(claim)
	c.log("release %s by %s", claim.Key, claim.Owner)
	_, err := exchange(ctx, c, "release", claim, func(ctx context.Context, claim lock.Claim) (any, error) {
		return nil, c.store.of(claim.Key).Release(ctx, claim)
	})
	c.log("release %s by %s: %v", claim.Key, claim.Owner, err)
	return err
}

// Wait implements lock.Backend. The notification may be lost on the way.
func (c *client) Wait(ctx context.Context, claim lock.Claim, g lock.Grant) error {
	defer c.watch.waited(claim)
	d := c.plan.draw("wait", c.name, claim.Key, c.count("wait "+claim.Key))
	enough, cancel := context.WithTimeout(ctx, g.Retry+d.between(0, g.Retry/10+5*time.Millisecond))
	defer cancel()
	never := lock.Grant{Held: true, Retry: 1000 * time.Hour}
	if c.store.of(claim.Key).Wait(enough, claim, never) == nil {
		lost := c.cut() || !c.healed() && d.chance(c.plan.profile.deaf)
		select {
		case <-time.After(d.between(50*time.Microsecond, prompt)):
		case <-enough.Done():
		}
		if enough.Err() == nil && !lost && !c.cut() {
			c.log("wait %s by %s: notified", claim.Key, claim.Owner)
			return nil
		}
		c.log("wait %s by %s: notification lost", claim.Key, claim.Owner)
		<-enough.Done()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.log("wait %s by %s: long enough", claim.Key, claim.Owner)
	return nil
}

// Close implements lock.Backend.
func (c *client) Close() error { return nil }

// cut reports whether messages are lost now.
func (c *client) cut() bool {
	now := time.Since(c.start)
	return slices.ContainsFunc(c.plan.faults, func(f fault) bool {
		return f.kind == cutOff && c.clients[f.process] == c && now >= f.at && now < f.at+f.length
	})
}

// errReset is what a process sees of a lost connection.
var errReset = errors.New("connection reset")

const (
	prompt    = 3 * time.Millisecond  // that a message takes at most without faults
	lingering = 50 * time.Microsecond // that a call takes at most to return when its context ends
)

// fate is what the network does to one call.
type fate struct {
	there, back time.Duration
	loseRequest bool
	loseAnswer  bool
	reset       time.Duration // 0, or when the caller is told that its connection broke
	repeat      time.Duration // 0, or how much later the request arrives once more
	linger      time.Duration // from the context's end to the return
}

// fate draws the fate of a call of this kind on the key.
func (c *client) fate(kind, key string) fate {
	p, ttl, healed := c.plan.profile, c.options.TTL, c.healed()
	d := c.plan.draw("fate", c.name, kind, key, c.count(kind+" "+key))
	delay := func() time.Duration {
		if d.chance(p.slow) && !healed {
			return d.between(0, ttl*3/2)
		}
		return d.between(50*time.Microsecond, prompt)
	}
	f := fate{there: delay(), back: delay()}
	if c.plan.grain == time.Nanosecond {
		f.linger = d.between(time.Microsecond, lingering)
	} // else at once: the answer and the context's end race
	if healed {
		return f
	}
	if d.chance(p.repeat) {
		f.repeat = d.between(0, ttl*3/2)
	}
	if d.chance(p.lose) {
		f.loseRequest = d.chance(0.5)
		f.loseAnswer = !f.loseRequest
		if d.chance(0.5) {
			f.reset = d.between(0, prompt)
		}
	}
	return f
}

type answer[T any] struct {
	value T
	err   error
}

// exchange sends a request to the store, which answers it by calling do.
func exchange[T any](
	ctx context.Context, c *client, kind string, claim lock.Claim, do func(context.Context, lock.Claim) (T, error),
) (T, error) {
	f := c.fate(kind, claim.Key)
	answers := make(chan answer[T], 1)
	c.inFlight.Go(func() { deliver(c, kind, claim, f, do, answers) })
	var reset <-chan time.Time
	if f.reset > 0 {
		reset = time.After(f.reset)
	}
	var none T
	select {
	case a := <-answers:
		return a.value, a.err
	case <-reset:
		return none, errReset
	case <-ctx.Done():
		time.Sleep(f.linger)
		return none, ctx.Err()
	}
}

// deliver is a request's way to the store, and its answer's way back.
func deliver[T any](
	c *client, kind string, claim lock.Claim, f fate,
	do func(context.Context, lock.Claim) (T, error), answers chan<- answer[T],
) {
	lost := c.cut()
	time.Sleep(f.there)
	if lost || f.loseRequest || c.cut() {
		c.log("%s %s by %s: request lost", kind, claim.Key, claim.Owner)
		return
	}
	value, err := do(context.Background(), claim)
	if f.repeat > 0 {
		c.inFlight.Go(func() {
			time.Sleep(f.repeat)
			if !c.cut() {
				_, err := do(context.Background(), claim)
				c.log("%s %s by %s: arrived once more: %v", kind, claim.Key, claim.Owner, err)
			}
		})
	}
	lost = c.cut()
	time.Sleep(f.back)
	if lost || f.loseAnswer || c.cut() {
		c.log("%s %s by %s: answer lost", kind, claim.Key, claim.Owner)
		return
	}
	answers <- answer[T]{value, err}
}

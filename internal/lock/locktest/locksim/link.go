package locksim

import (
	"context"
	"strconv"
	"sync"
	"time"

	"example.com/shop/internal/lock"
)

// link is a lock.Backend: one process's way to the server. It also watches what
// the process's Locker sends.
type link struct {
	processPlan
	world *world
	opt   lock.Options // with defaults
	watch watch

	mu      sync.Mutex
	calls   map[string]int           // by kind and key
	aliases map[string]string        // of owners, for the log
	told    map[string]chan struct{} // capacity 1
	leave   map[string]func()        // by worker: makes it give up waiting
	dead    bool                     // crashed
}

func (l *link) note(what string, args ...any) { l.world.note(l.name, what, args...) }

// count returns how many there were before this one.
func (l *link) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[what]++
	return l.calls[what]
}

// meet gives a new owner a short name for the log: the how manieth of its key.
func (l *link) meet(c lock.Claim) {
	l.world.introduce(c.Owner, l)
	if l.alias(c.Owner) != "" {
		return
	}
	a := "#" + strconv.Itoa(l.count("owner "+c.Key))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aliases[c.Owner] = a
}

func (l *link) alias(owner string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.aliases[owner]
}

// Acquire implements lock.Backend.
func (l *link) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	l.meet(c)
	sent := time.Now()
	l.watch.asks(c)
	l.note("acquire %s by %s", c.Key, l.alias(c.Owner))
	g, err := exchange(ctx, l, "acquire", c, func() (granted, error) { return l.world.server.acquire(c) })
	l.watch.answered(c, sent, g, err)
	if ctx.Err() == nil {
		l.note("acquire %s by %s: held %v, fence %d, retry %v, %v", c.Key, l.alias(c.Owner), g.Held, l.world.fence(g.Fence), g.Retry, err)
	}
	return g.Grant, err
}

// Renew implements lock.Backend.
func (l *link) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	sent := time.Now()
	l.watch.renews(c)
	fence, err := exchange(ctx, l, "renew", c, func() (int64, error) { return l.world.server.renew(c) })
	if err == nil {
		l.watch.renewed(c, sent)
	}
	l.note("renew %s by %s, sent at %v: %v", c.Key, l.alias(c.Owner), sent.Sub(l.world.start), err)
	return fence, err
}

// Release implements lock.Backend.
func (l *link) Release(ctx context.Context, c lock.Claim) error {
	l.watch.releases(c)
	l.note("release %s by %s", c.Key, l.alias(c.Owner))
	_, err := exchange(ctx, l, "release", c, func() (struct{}, error) { return struct{}{}, l.world.server.release(c) })
	l.note("release %s by %s: %v", c.Key, l.alias(c.Owner), err)
	return err
}

// Wait implements lock.Backend.
func (l *link) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	defer l.watch.waited(c)
	d := throw(l.world.plan, "net", l.name, c.Key, strconv.Itoa(l.count("wait "+c.Key)))
	net := time.NewTimer(g.Retry + d.between(0, g.Retry/10+5*time.Millisecond))
	defer net.Stop()
	select {
	case <-l.expect(c.Owner):
		l.note("wait %s by %s: told", c.Key, l.alias(c.Owner))
	case <-net.C:
		l.note("wait %s by %s: long enough", c.Key, l.alias(c.Owner))
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Close implements lock.Backend.
func (l *link) Close() error { return nil }

// expect returns the channel on which the owner is told to ask again.
func (l *link) expect(owner string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	told := l.told[owner]
	if told == nil {
		told = make(chan struct{}, 1)
		l.told[owner] = told
	}
	return told
}

// hear brings a notification to the process. It reports whether anybody listens,
// as far as the server can know: not whether it arrives.
func (l *link) hear(owner string) bool {
	if l.crashed() {
		return false
	}
	d := throw(l.world.plan, "hear", l.name, strconv.Itoa(l.count("hear")))
	lost := l.cut(cutBack) || !l.world.healed() && d.chance(l.world.plan.weather.deaf)
	l.world.spawn(func() {
		time.Sleep(d.between(50*time.Microsecond, prompt))
		if lost || l.cut(cutBack) {
			l.note("call of %s lost", l.alias(owner))
			return
		}
		l.tell(owner)
	})
	return true
}

func (l *link) tell(owner string) {
	select {
	case l.expect(owner) <- struct{}{}:
	default: // told already
	}
}

// tellAll is what a backend does after its subscription was interrupted.
func (l *link) tellAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, told := range l.told {
		select {
		case told <- struct{}{}:
		default:
		}
	}
}

// waits remembers how to make a worker give up, nil for not any more.
func (l *link) waits(worker string, giveUp func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave[worker] = giveUp
}

// giveUp makes a worker give up, if it waits.
func (l *link) giveUp(worker string) bool {
	l.mu.Lock()
	leave := l.leave[worker]
	l.mu.Unlock()
	if leave != nil {
		leave()
	}
	return leave != nil
}

// cut reports whether messages in this direction are lost now.
func (l *link) cut(direction string) bool {
	if l.crashed() {
		return true
	}
	now := time.Since(l.world.start)
	for _, f := range l.world.plan.faults {
		if l.world.links[f.process] == l && (f.kind == cutBoth || f.kind == direction) && now >= f.at && now < f.at+f.length {
			return true
		}
	}
	return false
}

func (l *link) crash() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
}

func (l *link) crashed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

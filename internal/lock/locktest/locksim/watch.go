package locksim

import (
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/lock"
)

// watch checks what one Locker sends, and works out for how long it may trust
// what it was answered.
type watch struct {
	link *link

	mu       sync.Mutex
	owners   map[string]*ownerWatch
	holdings map[string][]*holding // by key, in the order of their answers
	last     map[string][]asked    // by key: those that ended in the latest moment
}

// asked is when a request was sent, and when its caller went on.
type asked struct{ sent, ended time.Time }

type ownerWatch struct {
	asking   int       // requests under way, also those that nobody waits for
	refused  bool      // the last answer was "held by another", and no Wait since
	released time.Time // when it was first given back
}

// holding is what the store granted to a process.
type holding struct {
	owner   string
	number  int       // in the order of all grants
	last    int64     // the highest fence seen: the grant's, or that of a lease after it
	sent    time.Time // when the granted request was
	granted time.Time // when its answer was here
	limit   time.Time // until when it may be trusted
	leases  int       // that were made of it
}

func (w *watch) of(owner string) *ownerWatch {
	o := w.owners[owner]
	if o == nil {
		o = &ownerWatch{}
		w.owners[owner] = o
	}
	return o
}

func (w *watch) asks(c lock.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.of(c.Owner)
	if o.refused && c.Queue {
		w.broke("%s asks again for %s, without a call and before its time", c.Owner, c.Key)
	}
	if !o.released.IsZero() {
		w.broke("%s asks for %s after it gave it back", c.Owner, c.Key)
	}
	if o.asking++; o.asking > 1 {
		w.broke("two callers ask for %s as %s at once", c.Key, c.Owner)
	}
}

func (w *watch) answered(c lock.Claim, sent time.Time, g granted, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.of(c.Owner)
	o.asking--
	now := time.Now()
	w.last[c.Key] = append(slices.DeleteFunc(w.last[c.Key], func(a asked) bool { return a.ended.Before(now) }), asked{sent, now})
	if err != nil {
		return
	}
	o.refused = g.Held
	if !g.Held {
		w.holdings[c.Key] = append(w.holdings[c.Key], &holding{
			owner: c.Owner, number: g.number, last: g.Fence, sent: sent, granted: time.Now(),
			limit: sent.Add(c.TTL - w.link.opt.Margin),
		})
	}
}

// justEnded reports whether a request for the key, sent at both times or before,
// has ended in this very moment.
func (w *watch) justEnded(key string, gone, far time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.last[key], func(a asked) bool {
		return !a.sent.After(gone) && !a.sent.After(far) && a.ended.Equal(time.Now())
	})
}

func (w *watch) waited(c lock.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(c.Owner).refused = false
}

func (w *watch) renews(c lock.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := w.of(c.Owner).released; !at.IsZero() && time.Now().After(at) {
		w.broke("a renewal of %s for %s after it was given back", c.Key, c.Owner)
	}
}

func (w *watch) renewed(c lock.Claim, sent time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := sent.Add(c.TTL - w.link.opt.Margin)
	for _, h := range w.holdings[c.Key] {
		if h.owner == c.Owner && limit.After(h.limit) {
			h.limit = limit
		}
	}
}

func (w *watch) releases(c lock.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.of(c.Owner)
	if o.asking > 0 {
		w.broke("%s is given back by %s before the answer to its request has come", c.Key, c.Owner)
	}
	if o.released.IsZero() {
		o.released = time.Now()
	}
}

// begins finds what a new lease is part of, and counts it: the latest grant whose
// fence is not higher.
func (w *watch) begins(key string, fence int64) (h *holding, index int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.holdings[key] {
		if g.last <= fence && (h == nil || g.number > h.number) {
			h = g
		}
	}
	if h == nil {
		w.broke("a lease on %s that the store never granted", key)
		h = &holding{}
	}
	h.last = fence
	h.leases++
	return h, h.leases
}

// raised notes a fence that a lease was raised to.
func (w *watch) raised(h *holding, fence int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h.last = max(h.last, fence)
}

// limit returns until when it may be trusted, by what was answered until now.
func (w *watch) limit(h *holding) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return h.limit
}

// broke names the owners in its message by their aliases.
func (w *watch) broke(rule string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok && w.link.alias(s) != "" {
			args[i] = w.link.alias(s)
		}
	}
	w.link.world.broke(w.link.name, rule, args...)
}

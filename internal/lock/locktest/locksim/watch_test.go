package locksim

import (
	"sync"
	"time"

	"example.com/shop/internal/lock"
)

// watch checks what one Locker sends, and works out for how long it may trust the answers.
type watch struct {
	client *client

	mu      sync.Mutex
	owners  map[string]*requests
	tenures map[string][]*tenure // by key, in the order of their answers
}

// requests are the requests under one owner.
type requests struct {
	asking   int       // under way, also those that no caller waits for
	refused  bool      // the last answer was "held by another", and no Wait since
	released time.Time // when it was first given back
}

// tenure is what the store granted to a process.
type tenure struct {
	owner   string
	last    int64     // the highest fence seen: of the grant, or of a lease after it
	sent    time.Time // when the granted request was
	granted time.Time // when its answer was here
	limit   time.Time // until when it may be trusted
	leases  int       // that were made of it
}

func (w *watch) ofLocked(owner string) *requests {
	r := w.owners[owner]
	if r == nil {
		r = &requests{}
		w.owners[owner] = r
	}
	return r
}

func (w *watch) broke(c lock.Claim, rule string) {
	w.client.broke(w.client.name, "%s, key %s, owner %s", rule, c.Key, c.Owner)
}

// asks: "one at a time asks the store".
func (w *watch) asks(c lock.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.ofLocked(c.Owner)
	if r.refused && c.Queue {
		w.broke(c, "asks again, without a notification and before its time")
	}
	if !r.released.IsZero() {
		w.broke(c, "asks after it gave the key back")
	}
	if r.asking++; r.asking > 1 {
		w.broke(c, "two callers ask at once")
	}
}

func (w *watch) answered(c lock.Claim, sent time.Time, g lock.Grant, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.ofLocked(c.Owner)
	r.asking--
	if err != nil {
		return
	}
	r.refused = g.Held
	if !g.Held {
		w.tenures[c.Key] = append(w.tenures[c.Key], &tenure{
			owner: c.Owner, last: g.Fence, sent: sent, granted: time.Now(), limit: w.trusted(c, sent),
		})
	}
}

// trusted is until when a lease is trusted by an answer to a request that was sent then.
func (w *watch) trusted(c lock.Claim, sent time.Time) time.Time {
	return sent.Add(c.TTL - w.client.options.Margin)
}

func (w *watch) waited(c lock.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ofLocked(c.Owner).refused = false
}

// renews: "It is never renewed after its release".
func (w *watch) renews(c lock.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := w.ofLocked(c.Owner).released; !at.IsZero() && time.Now().After(at) {
		w.broke(c, "a renewal after the key was given back")
	}
}

func (w *watch) renewed(c lock.Claim, sent time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.tenures[c.Key] {
		if limit := w.trusted(c, sent); t.owner == c.Owner && limit.After(t.limit) {
			t.limit = limit
		}
	}
}

func (w *watch) releases(c lock.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.ofLocked(c.Owner)
	if r.asking > 0 {
		w.broke(c, "the key is given back before the answer to its request has come")
	}
	if r.released.IsZero() {
		r.released = time.Now()
	}
}

// begins finds the tenure of a new lease, and counts it: the latest grant whose fence is not higher.
func (w *watch) begins(key string, fence int64) (t *tenure, index int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range w.tenures[key] {
		if u.last <= fence && (t == nil || u.last >= t.last) {
			t = u
		}
	}
	if t == nil {
		w.client.broke(w.client.name, "a lease on %s that the store never granted", key)
		t = &tenure{}
	}
	t.last = fence
	t.leases++
	return t, t.leases
}

// limit returns until when the tenure may be trusted, by the answers until now.
func (w *watch) limit(t *tenure) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return t.limit
}

package redlock

import (
	"sync"

	"example.com/shop/internal/lock"
)

// tries counts the failed attempts of those who wait. Its entries do not outlive
// the wait: one is dropped when the wait ends in a grant, an error, the end of
// its context or a release. A Locker has one waiter for each key at most.
type tries struct {
	mu     sync.Mutex
	failed map[contender]int
}

// count adds a failed attempt, and reports whether there were most of them.
func (t *tries) count(c lock.Claim, most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	who := contender{c.Key, c.Owner}
	if t.failed[who]+1 < most {
		t.failed[who]++
		return false
	}
	delete(t.failed, who)
	return true
}

// forget begins anew.
func (t *tries) forget(c lock.Claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failed, contender{c.Key, c.Owner})
}

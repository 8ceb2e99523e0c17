package tape

import (
	"context"
	"slices"

	"example.com/shop/internal/lock"
)

// Lock returns an observer that records what the lock's store says of a key, and
// tells the next one everything.
func (s *Shelf) Lock(next lock.Observer) lock.Observer { return lockObserver{next, s} }

type lockObserver struct {
	lock.Observer
	shelf *Shelf
}

// Contended implements lock.Observer.
func (o lockObserver) Contended(key string) {
	o.note(key, "lock-contended", "somebody else has it")
	o.Observer.Contended(key)
}

// Lost implements lock.Observer.
func (o lockObserver) Lost(key string, cause error) {
	o.note(key, "lock-lost", "")
	o.Observer.Lost(key, cause)
}

// note never stops: whoever observes must return quickly.
func (o lockObserver) note(key, what, detail string) {
	if t := o.shelf.of(context.Background(), slices.Values([]string{key})); t != nil {
		t.add(Step, what, detail)
	}
}

package order

import (
	"sync"
	"time"

	"example.com/shop/internal/stock"
)

const (
	// recentFor is how long what a lane has seen is good for another batch. It also
	// bounds for how long a step of the database's clock goes unnoticed.
	recentFor = time.Second

	recentSKUs = 1024 // for so many SKUs; the others look
)

// recent is what the lanes of an instance have seen last, so that a batch that follows
// another need look at nothing. It is good for selling, and nobody is refused by it.
// What it tells is asked again by the transaction's own statements: the units and terms
// of the SKU by the one that takes them, the keys by theirs. Where it is wrong, and
// where by what it tells somebody could not be sold what they want, the batch looks.
type recent struct {
	keep time.Duration
	now  func() time.Time

	mu     sync.Mutex
	sights map[string]memory // by SKU
}

// sight is a SKU as it was when the database's clock said at.
type sight struct {
	sku stock.SKU
	at  time.Time
}

// memory is a sight, and when it was there by the clock of this process.
type memory struct {
	sight
	since time.Time
}

func newRecent(now func() time.Time) *recent {
	return &recent{keep: recentFor, now: now, sights: map[string]memory{}}
}

// saw keeps what was read just now.
func (r *recent) saw(seen sight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.sights[seen.sku.Name]; !known && len(r.sights) >= recentSKUs {
		for name := range r.sights { // any of them
			delete(r.sights, name)
			break
		}
	}
	r.sights[seen.sku.Name] = memory{seen, r.now()}
}

// sold is told what a lane of this instance has taken since.
func (r *recent) sold(t stock.Take) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.sights[t.SKU]; ok {
		s.sku.Level.Available -= t.Units
		r.sights[t.SKU] = s
	}
}

// of returns how a SKU should look now, and for how long that is good.
func (r *recent) of(name string) (now sight, left time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sights[name]
	age := r.now().Sub(s.since)
	if !ok || age >= r.keep {
		delete(r.sights, name)
		return sight{}, 0, false
	}
	return sight{s.sku, s.at.Add(age.Truncate(time.Microsecond))}, r.keep - age, true // no finer than a store keeps
}

// planUnseen plans what a batch is sold by what was seen last, if everybody in it can
// have what they want.
func (s *Service) planUnseen(sku string, batch []*wish) (p sale, ok bool) {
	seen, _, ok := s.recent.of(sku)
	if !ok {
		return sale{}, false
	}
	p = s.plan(batch, seen)
	return p, len(p.refused) == 0
}

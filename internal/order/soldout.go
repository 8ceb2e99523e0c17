package order

import (
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"example.com/shop/internal/stock"
)

// Bounds of what an instance remembers. What is beyond them is sold, or refused,
// by way of the lane, as if it were not known.
const (
	soldOutSKUs = 1024      // SKUs
	soldOutKeys = 100_000   // idempotency keys of the orders with one SKU
	allKeys     = 1_000_000 // of all of them: 8 MB
	learnAgain  = 10 * time.Second
)

// soldOut is what an instance knows of SKUs that have nothing left. Buyers of them
// are refused without asking anybody, for at most keep after the moment when the
// stock was read, and never after this instance has heard that units came back.
//
// A key that has bought must get its order, not be told that the units are gone.
// So the keys of all orders with the SKU are part of what is known, and these asks
// go the long way. They are read after the stock. An order that is not among them
// was committed later than the stock was read; then nothing was available, and so
// somebody has given units back in between. Whoever does so says so after its
// commit, and that ends what is known, or the learning of it: a look that began
// before the news cannot be kept after it. So do orders of this instance, whose
// units must have come from somewhere.
//
// What remains is the time that the news takes from another instance, and keep
// where it is lost. For so long a buyer may be told that nothing is left though
// something is, also a buyer who bought it this very moment on that instance and
// asks again here; asked later, that is the replay. Nothing is ever sold by
// mistake: nothing is sold here at all.
//
// Keys of other requests are not read: one that has bought, paid or cancelled
// something without this SKU is told that the SKU is sold out, as if it were new,
// and that it is reused only when that is no longer known. Neither changes a row.
type soldOut struct {
	keep time.Duration // 0: nothing is remembered
	now  func() time.Time

	mu      sync.RWMutex
	hearing bool              // news of other instances comes in; without, nothing is remembered
	known   map[string]*empty // by SKU
	looks   map[string]*look  // under way, at most one for each SKU: its lane's
	keys    int               // in all of known
	seed    maphash.Seed
}

// empty is a SKU that had nothing left.
type empty struct {
	until    time.Time
	supplied int64
	fence    int64
	keys     keySet // of the orders with it, when the SKU had this supply and fence
	given    bool   // given up: there are too many keys, or they could not be read
}

func newSoldOut(keep time.Duration, now func() time.Time) *soldOut {
	return &soldOut{keep: keep, now: now, known: map[string]*empty{}, looks: map[string]*look{}, seed: maphash.MakeSeed()}
}

// refuses tells whether r can be refused by what is known, and by which line.
func (s *soldOut) refuses(r Request) (sku string, ok bool) {
	if s.keep == 0 {
		return "", false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.known) == 0 {
		return "", false
	}
	now, key := s.now(), s.hash(BuyerKey{r.Buyer, r.Key})
	for _, line := range r.Lines {
		e := s.known[line.SKU]
		if e != nil && !e.given && now.Before(e.until) && !e.keys.has(key) {
			return line.SKU, true
		}
	}
	return "", false
}

// knows tells whether anybody is refused a SKU by what is known.
func (s *soldOut) knows(sku string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.known[sku]
	return e != nil && !e.given && s.now().Before(e.until)
}

// forget ends what is known of these SKUs, and being learned.
func (s *soldOut) forget(skus ...string) {
	if s.keep == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sku := range skus {
		s.drop(sku)
		if l := s.looks[sku]; l != nil {
			l.stale = true
		}
	}
}

// hear says whether news of other instances comes in from now on. What was known
// before may have changed unheard.
func (s *soldOut) hear(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hearing, s.keys = on, 0
	clear(s.known)
	for _, l := range s.looks {
		l.stale = true
	}
}

func (s *soldOut) drop(sku string) {
	if e := s.known[sku]; e != nil {
		s.keys -= len(e.keys)
		delete(s.known, sku)
	}
}

// errSoldOut is the refusal of a SKU, whoever knows of it.
func errSoldOut(sku string) error { return fmt.Errorf("sku %q: %w", sku, stock.ErrSoldOut) }

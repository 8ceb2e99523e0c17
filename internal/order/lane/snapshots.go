package lane

import (
	"sync"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

const maxSnapshots = 1024 // SKUs; the others are read

// snapshots are the SKUs as the lanes of an instance saw them last.
type snapshots struct {
	keep time.Duration // which also bounds for how long a step of the database's clock goes unnoticed
	now  func() time.Time

	mu    sync.Mutex
	bySKU map[string]snapshot
}

type snapshot struct {
	sku   stock.SKU
	at    time.Time // by the database's clock
	since time.Time // by the clock of this process
}

func newSnapshots(keep time.Duration, now func() time.Time) *snapshots {
	return &snapshots{keep: keep, now: now, bySKU: map[string]snapshot{}}
}

// saw keeps what was read just now, of one SKU.
func (s *snapshots) saw(levels order.Levels) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sku := levels.SKUs[0]
	if _, known := s.bySKU[sku.Name]; !known && len(s.bySKU) >= maxSnapshots {
		for name := range s.bySKU { // any of them
			delete(s.bySKU, name)
			break
		}
	}
	s.bySKU[sku.Name] = snapshot{sku, levels.At, s.now()}
}

// sold takes units that a lane of this instance has sold off a snapshot.
func (s *snapshots) sold(sku string, units int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen, ok := s.bySKU[sku]; ok {
		seen.sku.Level.Available -= units
		s.bySKU[sku] = seen
	}
}

// soldOut reports whether nothing of a SKU was left when it was seen last.
func (s *snapshots) soldOut(sku string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.bySKU[sku]
	return ok && seen.sku.Level.Available <= 0
}

// of returns how a SKU should be now, and for how long that can be used.
func (s *snapshots) of(sku string) (levels order.Levels, left time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.bySKU[sku]
	age := s.now().Sub(seen.since)
	if !ok || age >= s.keep {
		delete(s.bySKU, sku)
		return order.Levels{}, 0, false
	}
	at := seen.at.Add(age.Truncate(time.Microsecond)) // no finer than a store keeps
	return order.Levels{SKUs: []stock.SKU{seen.sku}, At: at}, s.keep - age, true
}

package lane

import (
	"sync"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

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
	s.bySKU[levels.SKUs[0].Name] = snapshot{levels.SKUs[0], levels.At, s.now()}
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

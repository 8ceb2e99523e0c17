package lane

import (
	"sync"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

const maxSnapshots = 1024 // SKUs; when it is full, any other one is dropped

// snapshots caches the stock of SKUs as the lanes of an instance read or changed it last.
type snapshots struct {
	keep time.Duration // also bounds how long a step of the database's clock goes unnoticed
	now  func() time.Time

	mu    sync.Mutex
	bySKU map[string]snapshot
}

type snapshot struct {
	sku   stock.SKU
	at    time.Time // by the database's clock
	since time.Time // the same moment by the clock of this process
}

// put stores the levels of one SKU, which were read at that moment.
func (s *snapshots) put(levels order.Levels, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sku := levels.SKUs[0]
	if _, known := s.bySKU[sku.Name]; !known && len(s.bySKU) >= maxSnapshots {
		for name := range s.bySKU {
			delete(s.bySKU, name)
			break
		}
	}
	s.bySKU[sku.Name] = snapshot{sku, levels.At, since}
}

// subtract takes the units that a lane of this instance has sold from a snapshot.
func (s *snapshots) subtract(sku string, units int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if snap, ok := s.bySKU[sku]; ok {
		snap.sku.Level.Available -= units
		s.bySKU[sku] = snap
	}
}

// soldOut reports whether the last snapshot of a SKU has no units left, however old it is.
func (s *snapshots) soldOut(sku string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap, ok := s.bySKU[sku]
	return ok && snap.sku.Level.Available <= 0
}

// get returns the expected levels of a SKU by now, and for how long they may be used.
func (s *snapshots) get(sku string) (levels order.Levels, left time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap, ok := s.bySKU[sku]
	age := s.now().Sub(snap.since)
	if !ok || age >= s.keep {
		delete(s.bySKU, sku)
		return order.Levels{}, 0, false
	}
	at := snap.at.Add(age.Truncate(time.Microsecond)) // the precision of a store
	return order.Levels{SKUs: []stock.SKU{snap.sku}, At: at}, s.keep - age, true
}

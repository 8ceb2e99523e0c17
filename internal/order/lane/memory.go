package lane

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Bounds of what an instance remembers. What is beyond them goes through the lane.
const (
	maxSKUs    = 1024
	maxKeys    = 100_000   // idempotency keys of the orders with one SKU
	maxAllKeys = 1_000_000 // of all SKUs: 8 MB
	learnAgain = 10 * time.Second
	learnBound = time.Second // for reading keys: the lane waits for it
)

// memory is what an instance knows of SKUs that have nothing left. Buyers of them
// are refused without a lock or a read, for at most keep after the stock was read, and never
// after this instance has heard that units came back.
//
// A key that has bought must get its order, not be refused: the keys of all orders with the
// SKU are part of what is known, and requests with them go through the lane. They are read after the
// stock. An order that is not among them was committed later than the stock was read; then
// nothing was available, and so units came back in between. The instance that gave them back
// announces that after its commit, and the announcement ends what is known, or is being learned.
//
// What remains is the time that the announcement takes, and keep where it is lost. For
// so long a buyer may be refused though units are left, also one that has just bought them on
// another instance and asks again here. Hence the refusal says that asking again is safe.
// Nothing is ever oversold by it: it sells nothing.
type memory struct {
	keep time.Duration // 0: nothing is remembered
	now  func() time.Time
	seed maphash.Seed

	mu      sync.RWMutex
	hearing bool                // announcements of other instances are received
	known   map[string]*nothing // by SKU
	looks   map[string]*look    // under way, by SKU: at most one, its leader's
	keys    int                 // in all of known
}

// nothing is a SKU that had nothing left.
type nothing struct {
	until time.Time
	level stock.Level
	fence int64
	keys  []uint64 // hashes of the orders' keys, sorted; one that equals another's goes through the lane
	gave  bool     // there are too many keys, or they could not be read: nobody is refused
}

// look is what a leader saw of its SKU.
type look struct {
	sku   string
	began time.Time
	stale bool // units came back since it began
	seen  *stock.SKU
}

func newMemory(keep time.Duration, now func() time.Time) *memory {
	return &memory{keep: keep, now: now, known: map[string]*nothing{}, looks: map[string]*look{}, seed: maphash.MakeSeed()}
}

// refuses reports whether a request is refused, and for which of its SKUs.
func (m *memory) refuses(buyer, key string, skus []string) (sku string, ok bool) {
	if m.keep == 0 {
		return "", false
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if len(m.known) == 0 {
		return "", false
	}
	for _, sku := range skus {
		if n := m.known[sku]; n != nil && !n.gave && m.now().Before(n.until) {
			if _, bought := slices.BinarySearch(n.keys, m.hash(order.BuyerKey{Buyer: buyer, Key: key})); !bought {
				return sku, true
			}
		}
	}
	return "", false
}

// hash is another one in each process, so that a client cannot choose keys that collide.
func (m *memory) hash(key order.BuyerKey) uint64 { return maphash.Comparable(m.seed, key) }

// knows reports whether buyers of a SKU are refused.
func (m *memory) knows(sku string) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n := m.known[sku]
	return n != nil && !n.gave && m.now().Before(n.until)
}

// forget ends what is known of these SKUs, or is being learned.
func (m *memory) forget(skus ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, sku := range skus {
		m.dropLocked(sku)
		if l := m.looks[sku]; l != nil {
			l.stale = true
		}
	}
}

// hear says whether announcements are received from now on. What was known before may have
// changed unheard.
func (m *memory) hear(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hearing, m.keys = on, 0
	clear(m.known)
	for _, l := range m.looks {
		l.stale = true
	}
}

func (m *memory) dropLocked(sku string) {
	if n := m.known[sku]; n != nil {
		m.keys -= len(n.keys)
		delete(m.known, sku)
	}
}

// look registers the look of a SKU's leader. It ends with end.
func (m *memory) look(sku string) *look {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &look{sku: sku}
	m.looks[sku] = l
	return l
}

func (m *memory) end(l *look) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.looks[l.sku] == l { // the next leader's may have begun
		delete(m.looks, l.sku)
	}
}

// begin is called before the stock is read, again before each read.
func (m *memory) begin(l *look) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.began, l.stale, l.seen = m.now(), false, nil
}

// wanted reports whether what a leader saw is worth remembering, and returns the keys that are
// known already: where the fence and the supply are as they were, there is no new order.
// (Orders by strategies without a fence need units that came back, which is announced.)
func (m *memory) wanted(l *look) (keys []uint64, wanted bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.keep == 0 || !m.hearing || l.stale || l.seen == nil || l.seen.Level.Available > 0 {
		return nil, false
	}
	n := m.known[l.sku]
	switch {
	case n == nil:
		return nil, true
	case n.gave:
		return nil, !m.now().Before(n.until)
	case n.fence == l.seen.Fence && n.level.Supplied == l.seen.Level.Supplied:
		return n.keys, true
	}
	return nil, true
}

// keepIt remembers what a leader saw, unless units came back since.
func (m *memory) keepIt(l *look, n *nothing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.stale || !m.hearing {
		return
	}
	m.dropLocked(l.sku)
	for sku := range m.known { // any of them: it is learned again when it is asked for
		if len(m.known) < maxSKUs && m.keys+len(n.keys) <= maxAllKeys {
			break
		}
		m.dropLocked(sku)
	}
	m.known[l.sku] = n
	m.keys += len(n.keys)
}

// learn remembers what a leader has seen of a SKU with nothing left. It is called after
// the answers and without the lease.
func (l *Lanes) learn(look *look) {
	keys, wanted := l.memory.wanted(look)
	if !wanted {
		return
	}
	if keys == nil {
		ctx, cancel := context.WithTimeout(l.ctx, learnBound)
		defer cancel()
		keys = []uint64{}
		err := l.Store.KeysOf(ctx, look.sku, maxKeys+1, func(key order.BuyerKey) {
			keys = append(keys, l.memory.hash(key))
		})
		if err != nil || len(keys) > maxKeys {
			l.memory.keepIt(look, &nothing{until: l.memory.now().Add(learnAgain), gave: true})
			return
		}
		slices.Sort(keys)
	}
	l.memory.keepIt(look, &nothing{until: look.began.Add(l.memory.keep), level: look.seen.Level, fence: look.seen.Fence, keys: keys})
}

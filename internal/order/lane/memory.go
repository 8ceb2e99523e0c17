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
	seed maphash.Seed // another one in each process, so that a client cannot choose keys that collide

	mu      sync.RWMutex
	hearing bool                // announcements of other instances are received
	known   map[string]*nothing // by SKU
	keys    int                 // in all of known
	changes [1024]uint64        // how often a SKU, by its hash, was forgotten; SKUs that share one are learned a little later
}

// nothing is a SKU that had nothing left.
type nothing struct {
	until  time.Time
	sku    stock.SKU // as it was read
	keys   []uint64  // hashes of the orders' keys, sorted; one that equals another's goes through the lane
	noKeys bool      // there are too many keys, or they could not be read: no buyer is refused
}

// look is what a batch reads of its SKU.
type look struct {
	began   time.Time // before the stock was read
	changes uint64    // at that time
	seen    stock.SKU
}

func newMemory(keep time.Duration, now func() time.Time) *memory {
	return &memory{keep: keep, now: now, known: map[string]*nothing{}, seed: maphash.MakeSeed()}
}

// refuses reports whether a request is refused, and for which of its SKUs.
func (m *memory) refuses(buyer, key string, skus []string) (sku string, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, sku := range skus {
		if n := m.knownLocked(sku); n != nil {
			if _, bought := slices.BinarySearch(n.keys, m.hash(order.BuyerKey{Buyer: buyer, Key: key})); !bought {
				return sku, true
			}
		}
	}
	return "", false
}

func (m *memory) hash(key order.BuyerKey) uint64 { return maphash.Comparable(m.seed, key) }

// knows reports whether buyers of a SKU are refused.
func (m *memory) knows(sku string) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.knownLocked(sku) != nil
}

// knownLocked returns why buyers of a SKU are refused; nil if they are not.
func (m *memory) knownLocked(sku string) *nothing {
	if n := m.known[sku]; n != nil && !n.noKeys && m.now().Before(n.until) {
		return n
	}
	return nil
}

// forget ends what is known of these SKUs, or is being learned.
func (m *memory) forget(skus ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, sku := range skus {
		m.dropLocked(sku)
		*m.changesLocked(sku)++
	}
}

// hear says whether announcements are received from now on. What was known before may have
// changed unheard.
func (m *memory) hear(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hearing, m.keys = on, 0
	clear(m.known)
	for i := range m.changes {
		m.changes[i]++
	}
}

func (m *memory) dropLocked(sku string) {
	if n := m.known[sku]; n != nil {
		m.keys -= len(n.keys)
		delete(m.known, sku)
	}
}

func (m *memory) changesLocked(sku string) *uint64 {
	return &m.changes[maphash.String(m.seed, sku)%uint64(len(m.changes))]
}

// look is called before a SKU is read.
func (m *memory) look(sku string) *look {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return &look{began: m.now(), changes: *m.changesLocked(sku)}
}

// learn remembers a SKU with nothing left, unless units came back since the look began. It is
// called after the answers and without the lease.
func (m *memory) learn(ctx context.Context, store order.Store, look *look) {
	sku := look.seen
	m.mu.RLock()
	last, changed := m.known[sku.Name], look.changes != *m.changesLocked(sku.Name)
	wanted := m.keep > 0 && m.hearing && !changed && sku.Level.Available <= 0
	m.mu.RUnlock()
	if !wanted || last != nil && last.noKeys && m.now().Before(last.until) {
		return
	}
	n := &nothing{until: look.began.Add(m.keep), sku: sku}
	// Where the fence and the supply are as they were, there is no new order. (Orders by
	// strategies without a fence need units that came back, which is announced.)
	if last != nil && !last.noKeys && last.sku.Fence == sku.Fence && last.sku.Level.Supplied == sku.Level.Supplied {
		n.keys = last.keys
	} else if !m.readKeys(ctx, store, n) {
		n = &nothing{until: m.now().Add(learnAgain), noKeys: true}
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	if look.changes != *m.changesLocked(sku.Name) || !m.hearing {
		return
	}
	m.dropLocked(sku.Name)
	for other := range m.known { // any of them: it is learned again when it is asked for
		if len(m.known) < maxSKUs && m.keys+len(n.keys) <= maxAllKeys {
			break
		}
		m.dropLocked(other)
	}
	m.known[sku.Name] = n
	m.keys += len(n.keys)
}

// readKeys reads the keys of the orders with a SKU, and reports whether it got all.
func (m *memory) readKeys(ctx context.Context, store order.Store, n *nothing) bool {
	ctx, cancel := context.WithTimeout(ctx, learnBound)
	defer cancel()
	err := store.KeysOf(ctx, n.sku.Name, maxKeys+1, func(key order.BuyerKey) {
		n.keys = append(n.keys, m.hash(key))
	})
	slices.Sort(n.keys)
	return err == nil && len(n.keys) <= maxKeys
}

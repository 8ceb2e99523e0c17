package zklock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/zklock"
)

// market is a key at which processes take turns all the time. It sees to it that
// one at a time is trusted with it, and that fences rise.
type market struct {
	t       *testing.T
	ttl     time.Duration
	lockers []*lock.Locker // the first does not sell

	mu      sync.Mutex
	trusted *lock.Lease // of the last turn
	fence   int64
	turns   []int // by process
	sold    *sync.Cond
}

const marketKey = "key"

// newMarket gives each process a session of its own, as short as it may be.
func newMarket(t *testing.T, addrs []string, root string, ttl time.Duration, processes int) *market {
	t.Helper()
	m := &market{t: t, ttl: ttl, turns: make([]int, processes)}
	m.sold = sync.NewCond(&m.mu)
	for range processes {
		b := connectAll(t, addrs, zklock.Options{Root: root, SessionTimeout: 3 * ttl})
		m.lockers = append(m.lockers, newLocker(t, b, lock.Options{TTL: ttl}))
	}
	return m
}

// open lets all processes but the first sell until the market is shut.
func (m *market) open() (shut func()) {
	ctx, cancel := context.WithCancel(m.t.Context())
	var sellers sync.WaitGroup
	for i, l := range m.lockers[1:] {
		sellers.Go(func() {
			for ctx.Err() == nil {
				err := l.Do(ctx, marketKey, func(_ context.Context, lease *lock.Lease) error {
					m.turn(i+1, lease)
					return nil
				})
				if err != nil && !errors.Is(err, lock.ErrNotAcquired) && !errors.Is(err, lock.ErrLost) {
					m.t.Errorf("process %d: %v", i+1, err)
				}
			}
		})
	}
	return func() { cancel(); sellers.Wait() }
}

// turn notes a lease that was just granted.
func (m *market) turn(process int, lease *lock.Lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fence := lease.Fence()
	if lease.Remaining() == 0 {
		return // it has passed to somebody else, who may have been here before
	}
	if m.trusted != nil && m.trusted.Remaining() > 0 {
		m.t.Errorf("TTL %v: process %d is granted the key while another trusts its lease", m.ttl, process)
	}
	if fence <= m.fence {
		m.t.Errorf("TTL %v: fence %d after %d", m.ttl, fence, m.fence)
	}
	m.trusted, m.fence = lease, fence
	m.turns[process]++
	m.sold.Broadcast()
}

// awaitTurns waits until each process that sells has had n turns more.
func (m *market) awaitTurns(n int) {
	m.t.Helper()
	const patience = 3 * patience // a leader may have to be elected on the way
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sold.Broadcast()
	})()
	m.mu.Lock()
	defer m.mu.Unlock()
	for before := slices.Clone(m.turns); ; m.sold.Wait() {
		least := n
		for i := range m.turns[1:] {
			least = min(least, m.turns[i+1]-before[i+1])
		}
		if least == n {
			return
		}
		if ctx.Err() != nil {
			m.t.Fatalf("TTL %v: turns %v, and %v %v ago; want %d more for each", m.ttl, m.turns, before, patience, n)
		}
	}
}

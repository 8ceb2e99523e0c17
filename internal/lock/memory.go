package lock

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Memory is a Backend that keeps leases in this process, for one instance and for tests of code that uses a Locker. Several
// Lockers may share one Memory. Leases expire as in any other store.
type Memory struct {
	// Now is the store's clock. A test can replace it before the first call.
	Now func() time.Time

	mu    sync.Mutex
	keys  map[string]*memoryKey
	fence int64 // the last fence, of any key
}

type memoryKey struct {
	owner   string
	granted time.Time
	expires time.Time
	waiting []memoryWaiter
}

type memoryWaiter struct {
	owner string
	woken chan struct{} // closed by the release that wakes it
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{Now: time.Now, keys: make(map[string]*memoryKey)} }

// Acquire implements Backend.
func (m *Memory) Acquire(_ context.Context, c Claim) (Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keys[c.Key]
	if k == nil {
		k = &memoryKey{}
		m.keys[c.Key] = k
	}
	now := m.Now()
	if k.owner != "" && k.owner != c.Owner && now.Before(k.expires) {
		if c.Queue && k.find(c.Owner) < 0 {
			k.waiting = append(k.waiting, memoryWaiter{c.Owner, make(chan struct{})})
		}
		return Grant{Held: true, Retry: k.expires.Sub(now)}, nil
	}
	k.leave(c.Owner)
	step := int64(1)
	if k.owner != "" && k.owner != c.Owner {
		step = fenceGap // the lease ran out
	}
	k.owner, k.granted, k.expires = c.Owner, now, now.Add(c.TTL)
	m.fence = max(m.fence+step, now.UnixMicro())
	return Grant{Fence: m.fence}, nil
}

// Wait implements Backend.
func (m *Memory) Wait(ctx context.Context, c Claim, g Grant) error {
	var woken chan struct{}
	m.mu.Lock()
	if k := m.keys[c.Key]; k != nil {
		if i := k.find(c.Owner); i >= 0 {
			woken = k.waiting[i].woken
		} else if k.owner == c.Owner { // a release has already woken it
			g.Retry = 0
		}
	}
	m.mu.Unlock()
	select {
	case <-woken:
	case <-time.After(g.Retry):
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Renew implements Backend.
func (m *Memory) Renew(_ context.Context, c Claim) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keys[c.Key]
	if k == nil || k.owner != c.Owner || !m.Now().Before(k.expires) {
		return 0, ErrLost
	}
	k.expires = m.Now().Add(c.TTL)
	m.fence = max(m.fence, c.Fence)
	return m.fence, nil
}

// Release implements Backend.
func (m *Memory) Release(_ context.Context, c Claim) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keys[c.Key]
	if k == nil {
		return ErrLost
	}
	m.fence = max(m.fence, c.Fence)
	k.leave(c.Owner)
	now := m.Now()
	held := k.owner == c.Owner && now.Before(k.expires)
	if k.owner == c.Owner {
		k.owner = ""
		if len(k.waiting) > 0 {
			next := k.waiting[0]
			k.waiting = k.waiting[1:]
			k.owner, k.expires = next.owner, now.Add(reservation)
			close(next.woken)
		}
	}
	if len(k.waiting) == 0 && k.owner == "" { // an owner whose lease ran out stays, because the next fence must exceed its hand-offs
		delete(m.keys, c.Key)
	}
	if !held {
		return ErrLost
	}
	return nil
}

// Holder implements Backend.
func (m *Memory) Holder(_ context.Context, key string) (Holder, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, now := m.keys[key], m.Now()
	if k == nil || k.owner == "" || !now.Before(k.expires) {
		return Holder{}, nil
	}
	return Holder{Owner: k.owner, Since: k.granted, Remaining: k.expires.Sub(now)}, nil
}

// Evict implements Backend. It renews the lease with a TTL of zero.
func (m *Memory) Evict(ctx context.Context, key, owner string) error {
	_, err := m.Renew(ctx, Claim{Key: key, Owner: owner})
	return err
}

// Close implements Backend. There is nothing to free.
func (m *Memory) Close() error { return nil }

func (k *memoryKey) find(owner string) int {
	return slices.IndexFunc(k.waiting, func(w memoryWaiter) bool { return w.owner == owner })
}

func (k *memoryKey) leave(owner string) {
	k.waiting = slices.DeleteFunc(k.waiting, func(w memoryWaiter) bool { return w.owner == owner })
}

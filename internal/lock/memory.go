package lock

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Memory is a Backend that keeps leases in this process: for one instance, and
// for tests of code that uses a Locker. Several Lockers may share one. Leases
// expire as in any other store.
type Memory struct {
	mu    sync.Mutex
	keys  map[string]*memoryKey
	fence int64 // the last one minted, whatever the key
}

type memoryKey struct {
	owner   string
	expires time.Time
	waiting []memoryWaiter
}

type memoryWaiter struct {
	owner string
	told  chan struct{} // capacity 1
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{keys: make(map[string]*memoryKey)}
}

// Acquire implements Backend.
func (m *Memory) Acquire(_ context.Context, c Claim) (Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keys[c.Key]
	if k == nil {
		k = &memoryKey{}
		m.keys[c.Key] = k
	}
	now := time.Now()
	if k.owner != "" && k.owner != c.Owner && now.Before(k.expires) {
		if c.Queue && k.find(c.Owner) < 0 {
			k.waiting = append(k.waiting, memoryWaiter{c.Owner, make(chan struct{}, 1)})
		}
		return Grant{Held: true, Retry: k.expires.Sub(now)}, nil
	}
	k.leave(c.Owner)
	step := int64(1)
	if k.owner != "" && k.owner != c.Owner {
		step = untold // its time ran out
	}
	k.owner, k.expires = c.Owner, now.Add(c.TTL)
	m.fence = max(m.fence+step, now.UnixMicro())
	return Grant{Fence: m.fence}, nil
}

// Wait implements Backend.
func (m *Memory) Wait(ctx context.Context, c Claim, g Grant) error {
	m.mu.Lock()
	var told chan struct{}
	if k := m.keys[c.Key]; k != nil {
		if i := k.find(c.Owner); i >= 0 {
			told = k.waiting[i].told
		} else if k.owner == c.Owner {
			m.mu.Unlock()
			return nil
		}
	}
	m.mu.Unlock()
	net := time.NewTimer(g.Retry)
	defer net.Stop()
	select {
	case <-told:
	case <-net.C:
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
	if k == nil || k.owner != c.Owner || !time.Now().Before(k.expires) {
		return 0, ErrLost
	}
	k.expires = time.Now().Add(c.TTL)
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
	now := time.Now()
	held := k.owner == c.Owner && now.Before(k.expires)
	if k.owner == c.Owner {
		k.owner = ""
		if len(k.waiting) > 0 {
			next := k.waiting[0]
			k.waiting = k.waiting[1:]
			k.owner, k.expires = next.owner, now.Add(reservation)
			wakeUp(next.told)
		}
	}
	if k.owner == "" || (!now.Before(k.expires) && len(k.waiting) == 0) {
		delete(m.keys, c.Key)
	}
	if !held {
		return ErrLost
	}
	return nil
}

// Close implements Backend. There is nothing to free.
func (m *Memory) Close() error { return nil }

func (k *memoryKey) find(owner string) int {
	return slices.IndexFunc(k.waiting, func(w memoryWaiter) bool { return w.owner == owner })
}

// leave takes the owner out of the line.
func (k *memoryKey) leave(owner string) {
	if i := k.find(owner); i >= 0 {
		k.waiting = slices.Delete(k.waiting, i, i+1)
	}
}

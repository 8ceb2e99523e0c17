package locksim

import (
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/internal/lock"
)

// store is what all processes share: a Memory for each key, on a clock that can be set. Losing its memory, it begins anew.
type store struct {
	start time.Time
	rate  float64
	ahead atomic.Int64 // nanoseconds by which the clock has stepped

	mu   sync.Mutex
	keys map[string]*lock.Memory
}

func newStore(rate float64) *store {
	return &store{start: time.Now(), rate: rate, keys: make(map[string]*lock.Memory)}
}

func (s *store) now() time.Time {
	elapsed := time.Duration(float64(time.Since(s.start)) * s.rate)
	return s.start.Add(elapsed + time.Duration(s.ahead.Load()))
}

func (s *store) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.keys)
}

func (s *store) of(key string) *lock.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.keys[key]
	if m == nil {
		m = lock.NewMemory()
		m.Now = s.now
		s.keys[key] = m
	}
	return m
}

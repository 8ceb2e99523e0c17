package locksim

import (
	"sync"
	"time"

	"example.com/shop/internal/lock"
)

// server is the store: what the scripts of package lock make of Redis, with
// clocks that can be set.
type server struct {
	mu     sync.Mutex
	clocks clocks
	keys   map[string]*entry
	lines  map[string]*standing
	grants int // so many until now

	// What the checks know and the store does not.
	highest map[string]int64 // fence that was minted or told
	rewound func()           // a lower one had to be minted
	tell    func(owner string) (heard bool)
}

type entry struct {
	owner     string // empty: free
	until     time.Duration
	fence     int64
	released  string        // who was the last to release
	forgotten time.Duration // when it is; a fence outlives its lease
}

const (
	reservation = 500 * time.Millisecond // how long a released key is kept for the next in line
	fenceMemory = time.Minute            // how long a fence is remembered after its lease
	untold      = 1 << 16                // so many hand-offs may a holder have numbered whose time ran out
)

// granted is a lock.Grant, numbered.
type granted struct {
	lock.Grant
	number int
}

func newServer(start time.Time, rate float64) *server {
	return &server{
		clocks:  clocks{start: start, rate: rate},
		keys:    make(map[string]*entry),
		lines:   make(map[string]*standing),
		highest: make(map[string]int64),
	}
}

// expire forgets what nobody has asked for in a while. The caller holds mu.
func (s *server) expire(key string) {
	now := s.clocks.now()
	if e := s.keys[key]; e != nil && now >= e.forgotten {
		delete(s.keys, key)
	}
	if l := s.lines[key]; l != nil && (now >= l.expires || len(l.waiting) == 0) {
		delete(s.lines, key)
	}
}

func (s *server) acquire(c lock.Claim) (granted, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(c.Key)
	now, e := s.clocks.now(), s.keys[c.Key]
	other := e != nil && e.owner != "" && e.owner != c.Owner
	if other && now < e.until {
		left := (e.until - now).Round(time.Millisecond)
		if c.Queue {
			s.stand(c, now+2*max(left, c.TTL))
		}
		return granted{Grant: lock.Grant{Held: true, Retry: left}}, nil
	}
	if e == nil {
		e = &entry{}
		s.keys[c.Key] = e
	}
	step := int64(1)
	if other {
		step = untold
	}
	e.fence = max(e.fence+step, s.clocks.mint())
	if e.fence <= s.highest[c.Key] {
		s.rewound()
	}
	s.highest[c.Key] = max(s.highest[c.Key], e.fence)
	e.owner = c.Owner
	e.keep(now, c.TTL)
	s.leave(c)
	s.grants++
	return granted{lock.Grant{Fence: e.fence}, s.grants}, nil
}

func (s *server) renew(c lock.Claim) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.owned(c)
	if e == nil {
		return 0, lock.ErrLost
	}
	s.learn(e, c)
	e.keep(s.clocks.now(), c.TTL)
	return e.fence, nil
}

func (s *server) release(c lock.Claim) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.owned(c)
	if e == nil {
		s.leave(c)
		if e := s.keys[c.Key]; e != nil && e.owner != c.Owner && e.released == c.Owner {
			return nil // the request was sent twice
		}
		return lock.ErrLost
	}
	s.learn(e, c)
	e.owner, e.released = "", c.Owner
	e.keep(s.clocks.now(), 0)
	for l := s.lines[c.Key]; l != nil && len(l.waiting) > 0; {
		next := l.waiting[0].owner
		l.waiting = l.waiting[1:]
		if s.tell(next) {
			e.owner = next
			e.keep(s.clocks.now(), reservation)
			break
		}
	}
	return nil
}

// keep is for how long the entry is its owner's.
func (e *entry) keep(now, ttl time.Duration) {
	e.until, e.forgotten = now+ttl, now+ttl+fenceMemory
}

// owned returns the claim's key if its owner holds it.
func (s *server) owned(c lock.Claim) *entry {
	s.expire(c.Key)
	if e := s.keys[c.Key]; e != nil && e.owner == c.Owner && s.clocks.now() < e.until {
		return e
	}
	return nil
}

// learn raises a fence to what the claim's owner has used.
func (s *server) learn(e *entry, c lock.Claim) {
	e.fence = max(e.fence, c.Fence)
	s.highest[c.Key] = max(s.highest[c.Key], e.fence)
}

// set runs fn, which changes the store's clocks or memory.
func (s *server) set(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
}

// left returns who holds keys, and who stands in line.
func (s *server) left() (holders, waiters []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, e := range s.keys {
		if s.expire(key); e.owner != "" && s.clocks.now() < e.until {
			holders = append(holders, e.owner)
		}
	}
	for key, l := range s.lines {
		if s.expire(key); s.lines[key] != nil {
			for _, p := range l.waiting {
				waiters = append(waiters, p.owner)
			}
		}
	}
	return holders, waiters
}

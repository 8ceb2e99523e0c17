package zklock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"example.com/shop/internal/lock"
)

// perTTL is how many times the TTL a session has to last; the package comment
// says why.
const perTTL = 3

// session is what a server has granted. The zero value is none.
type session struct {
	id      int64
	timeout time.Duration
	ended   chan struct{} // closed when the Backend is told that it has ended
}

// bears returns an ErrTTL if leases of this TTL could outlive the session.
func (s session) bears(ttl time.Duration) error {
	if ttl <= s.timeout/perTTL {
		return nil
	}
	return fmt.Errorf("%w: TTL %v is more than a third of %v, which the server granted", ErrTTL, ttl, s.timeout)
}

// sessions knows the session in which requests are sent now.
type sessions struct {
	mu      sync.Mutex
	current session
	changed chan struct{} // closed at the next change; nil if nobody waits
}

// set is called before any request can be sent in the session. One that goes on
// over another connection stays the same; any other, or none, ends the former.
func (s *sessions) set(granted session) (goesOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if goesOn = granted.id == s.current.id; goesOn {
		granted.ended = s.current.ended
	} else {
		if s.current.ended != nil {
			close(s.current.ended)
		}
		if granted.id != 0 {
			granted.ended = make(chan struct{})
		}
	}
	s.current = granted
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	return goesOn
}

func (s *sessions) now() session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// wait returns the session, and waits until there is one.
func (s *sessions) wait(ctx, open context.Context) (session, error) {
	for {
		s.mu.Lock()
		current := s.current
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		if current.id != 0 {
			return current, nil
		}
		select {
		case <-changed:
		case <-open.Done():
			return session{}, lock.ErrClosed
		case <-ctx.Done():
			return session{}, fmt.Errorf("no session: %w", context.Cause(ctx))
		}
	}
}

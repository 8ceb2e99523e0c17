package zklock

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"example.com/shop/internal/lock"
)

// session is what a server has granted. The zero value is none.
type session struct {
	id      int64
	timeout time.Duration
	ended   chan struct{} // closed when the Backend is told that it has ended
}

// bears returns an ErrTTL if leases of this TTL could outlive the session: the package comment says when.
func (s session) bears(ttl time.Duration) error {
	if ttl <= s.timeout/3 {
		return nil
	}
	return fmt.Errorf("%w: TTL %v is more than a third of %v, which the server granted", ErrTTL, ttl, s.timeout)
}

// sessions knows the session in which requests are sent now.
type sessions struct {
	mu      sync.Mutex
	current session
	changed chan struct{} // closed at the next change
}

// set is called before any request can be sent in the session. One that goes on over another connection stays the same;
// any other, or none, which is 0, ends the former.
func (s *sessions) set(id int64, timeout time.Duration) (goesOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if goesOn = id == s.current.id; !goesOn {
		if s.current.id != 0 {
			close(s.current.ended)
		}
		s.current = session{id: id, ended: make(chan struct{})}
	}
	s.current.timeout = timeout
	close(s.changed)
	s.changed = make(chan struct{})
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
		current, changed := s.current, s.changed
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

// dial opens the client library's connections, one at a time.
func (b *Backend) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	b.hangUp() // the library leaves the last one open when a session has expired
	conn, err := b.opt.Dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open.Err() != nil {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	b.last = conn
	patience := min(max(b.opt.SessionTimeout/3, time.Second), 5*time.Second)
	return &handshake{Conn: conn, patience: patience, granted: b.sessions.set, told: make(chan struct{})}, nil
}

// hangUp closes the last connection, which mostly is closed already.
func (b *Backend) hangUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil {
		_ = b.last.Close()
	}
}

// handshake is a connection that reads along in the server's first answer, since the library does not report the
// session's timeout. The answer is: length, protocol version, timeout in milliseconds (4 bytes each), session (8
// bytes), and a password. The session is 0 if the former one has expired.
//
// The library waits for that answer 6.7 session timeouts long, and for its second part for ever; a handshake is as
// patient as it is told to be.
//
// It also holds back the first answers on a connection in which a session goes on, until the library has told the
// server again what it watches. In doing so the library reads which change it has heard of last, while each answer
// already overwrites that: a data race, known since 2020 (go-zookeeper/zk, pull request 35).
type handshake struct {
	net.Conn
	patience time.Duration
	granted  func(session int64, timeout time.Duration) (goesOn bool)

	// These belong to the goroutine that reads.
	answer  []byte
	over    bool
	resumes bool // the next answer waits until the watches are told

	told chan struct{} // closed when the library tells the watches
	once sync.Once
}

const (
	answerLen = 4 + 4 + 4 + 8

	// opSetWatches tells the watches. The number stands behind the request's length and its own number, 4 bytes each.
	opSetWatches = 101
	opOffset     = 4 + 4

	// holdLimit bounds the wait for it: there may be nothing to tell.
	holdLimit = 100 * time.Millisecond
)

// Read calls granted before the library has seen the answer, and so before it sends a request in that session.
func (h *handshake) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if h.over {
		if h.resumes && n > 0 {
			h.resumes = false
			select {
			case <-h.told:
			case <-time.After(holdLimit):
			}
		}
		return n, err
	}
	if h.answer = append(h.answer, p[:n]...); len(h.answer) >= answerLen {
		timeout := time.Duration(int32(binary.BigEndian.Uint32(h.answer[8:]))) * time.Millisecond
		h.resumes = h.granted(int64(binary.BigEndian.Uint64(h.answer[12:])), timeout)
		h.over, h.answer = true, nil
	}
	return n, err
}

// Write is called with one request at a time.
func (h *handshake) Write(p []byte) (int, error) {
	if len(p) >= opOffset+4 && binary.BigEndian.Uint32(p[opOffset:]) == opSetWatches {
		h.once.Do(func() { close(h.told) })
	}
	return h.Conn.Write(p)
}

// SetReadDeadline is called by the library in the goroutine that reads.
func (h *handshake) SetReadDeadline(until time.Time) error {
	if latest := time.Now().Add(h.patience); !h.over && (until.IsZero() || until.After(latest)) {
		until = latest
	}
	return h.Conn.SetReadDeadline(until)
}

package zklock

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"example.com/shop/internal/lock"
)

// session is a session that a server has granted, or the time without one.
type session struct {
	id      int64 // 0: none
	timeout time.Duration
	ended   chan struct{} // closed when another one begins, or none
}

// checkTTL returns an ErrTTL if leases of this TTL could outlive the session: see the package comment.
func (s session) checkTTL(ttl time.Duration) error {
	if ttl <= s.timeout/3 {
		return nil
	}
	return fmt.Errorf("%w: TTL %v is more than a third of %v, which the server granted", ErrTTL, ttl, s.timeout)
}

// setSession is called before any request can be sent in the session. A session that goes on over another connection
// stays the same; any other one, or 0 for none, ends the former.
func (b *Backend) setSession(id int64, timeout time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id != b.session.id {
		close(b.session.ended)
		b.session = session{id: id, ended: make(chan struct{})}
	}
	b.session.timeout = timeout
}

// now returns the session in which requests are sent now.
func (b *Backend) now() session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session
}

// awaitSession returns the session, and waits until there is one.
func (b *Backend) awaitSession(ctx context.Context) (session, error) {
	for {
		s := b.now()
		if s.id != 0 {
			return s, nil
		}
		select {
		case <-s.ended:
		case <-b.open.Done():
			return s, lock.ErrClosed
		case <-ctx.Done():
			return s, fmt.Errorf("no session: %w", context.Cause(ctx))
		}
	}
}

// authenticate tells the servers who the Backend is, once: the library repeats that on each further connection.
func (b *Backend) authenticate() error {
	if b.opt.AuthScheme == "" {
		return nil
	}
	b.authenticating.Lock()
	defer b.authenticating.Unlock()
	if b.authenticated {
		return nil
	}
	if err := b.conn.AddAuth(b.opt.AuthScheme, []byte(b.opt.AuthCredentials)); err != nil {
		return fmt.Errorf("authenticate by scheme %q: %w", b.opt.AuthScheme, err)
	}
	b.authenticated = true
	return nil
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
	limit := min(max(b.opt.SessionTimeout/3, time.Second), 5*time.Second)
	return &handshake{Conn: conn, limit: time.AfterFunc(limit, func() { _ = conn.Close() }), granted: b.setSession}, nil
}

// hangUp closes the last connection, if it is still open.
func (b *Backend) hangUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil {
		_ = b.last.Close()
	}
}

// handshake is a connection that parses the server's first answer, since the library does not report the session's
// timeout. The library waits for that answer for 6.7 session timeouts; a handshake closes the connection before.
type handshake struct {
	net.Conn
	limit   *time.Timer // of the time until the answer; closes the connection
	granted func(session int64, timeout time.Duration)
	rest    io.Reader // what the library reads, from the answer on; nil until that has come
}

// Read calls granted before the library has seen the answer, and so before it sends a request in that session.
func (h *handshake) Read(p []byte) (int, error) {
	if h.rest == nil {
		var answer struct {
			Length, Version int32
			Timeout         int32 // in milliseconds
			Session         int64 // 0 if the former one has expired; a password follows
		}
		var seen bytes.Buffer
		if err := binary.Read(io.TeeReader(h.Conn, &seen), binary.BigEndian, &answer); err != nil {
			return 0, err
		}
		h.limit.Stop()
		h.granted(answer.Session, time.Duration(answer.Timeout)*time.Millisecond)
		h.rest = io.MultiReader(&seen, h.Conn)
	}
	return h.rest.Read(p)
}

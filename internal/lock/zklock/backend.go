package zklock

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"path"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
)

var (
	// ErrTTL means that the Locker's TTL is more than a third of the timeout that the server granted to the session:
	// another owner could get the key while a lease is still trusted.
	ErrTTL = errors.New("TTL too long for the session timeout")

	// ErrFence means that the requested fence is above the server's counter, or that the counter is too large for a fence.
	ErrFence = errors.New("fence out of range")
)

// Options of a Backend. The zero value works.
type Options struct {
	// SessionTimeout is the timeout that the Backend requests for its session: a crashed holder blocks its keys for this long.
	// It must be at least three times the Locker's TTL. A server grants 2 to 20 ticks, by default 4 s to 40 s. Default 30 s.
	SessionTimeout time.Duration

	// Root is the path of the node below which each key has its node. It is created if it is missing. Lockers that exclude
	// each other need the same Root. Default "/locks".
	Root string

	// AuthScheme and AuthCredentials authenticate the Backend, as addauth does in ZooKeeper's shell: "digest" and
	// "user:password". Then only clients with the same credentials can see, take and delete the nodes that the Backend
	// creates. Default: none, so that every client can.
	AuthScheme, AuthCredentials string

	// Dial opens a connection to one server, over TLS for example. Default net.DialTimeout.
	Dial zk.Dialer

	// Trace is called after each create, children, watch, set and delete, with the answer or error. Many goroutines
	// call it at once. It may be nil.
	Trace func(command, path, answer string)
}

// Backend is a lock.Backend that keeps leases in ZooKeeper. It may be used by many goroutines at once.
type Backend struct {
	opt    Options
	acl    []zk.ACL // of the nodes that the Backend creates
	conn   *zk.Conn
	events <-chan zk.Event

	open context.Context // ends with Close
	shut context.CancelFunc
	work sync.WaitGroup // calls in progress

	authenticating sync.Mutex
	authenticated  bool // also true without credentials; guarded by authenticating

	mu      sync.Mutex // never held during I/O
	session session
	places  map[ticket]*place
	last    net.Conn // the latest connection
}

// New returns a Backend with its own session on the servers, each a host:port, port 2181 by default. It does not wait for a
// connection; later calls do. New fails if an option is invalid or a host name cannot be resolved.
func New(servers []string, o Options) (*Backend, error) {
	o.SessionTimeout = cmp.Or(o.SessionTimeout, 30*time.Second)
	o.Root = path.Join("/", cmp.Or(o.Root, "locks"))
	if o.Dial == nil {
		o.Dial = net.DialTimeout
	}
	if o.SessionTimeout < time.Millisecond || o.SessionTimeout > 24*time.Hour {
		return nil, fmt.Errorf("zklock: SessionTimeout %v: want 1ms to 24h", o.SessionTimeout)
	}
	b := &Backend{
		opt:           o,
		acl:           zk.AuthACL(zk.PermAll), // for the creator's credentials
		authenticated: o.AuthScheme == "",
		session:       session{ended: make(chan struct{})},
		places:        make(map[ticket]*place),
	}
	if b.authenticated {
		b.acl = zk.WorldACL(zk.PermAll)
	}
	b.open, b.shut = context.WithCancel(context.Background())
	// The events are not read, and the library drops them: answers, watches and the handshake show the same.
	conn, events, err := zk.Connect(servers, o.SessionTimeout,
		zk.WithDialer(b.dial), zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		b.shut()
		return nil, err
	}
	b.conn, b.events = conn, events
	return b, nil
}

// Close ends the session and its nodes, in a few seconds at most. Without a server, they stay until the session's timeout.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.shut()
	b.mu.Unlock()
	b.conn.Close()
	b.hangUp()
	for range b.events { // the library's last goroutine closes it
	}
	b.work.Wait()
	b.setSession(0, 0)
	return nil
}

func (b *Backend) trace(command, path, answer string, err error) {
	if err != nil {
		answer = err.Error()
	}
	if b.opt.Trace != nil {
		b.opt.Trace(command, path, answer)
	}
}

// dir returns the path of a key's node.
func (b *Backend) dir(key string) string { return path.Join(b.opt.Root, escape(key)) }

// session is a session that a server has granted, or the time without one.
type session struct {
	id      int64 // 0: none
	timeout time.Duration
	ended   chan struct{} // closed when another session begins, or this one ends
}

// checkTTL returns an ErrTTL if leases of this TTL could outlive the session: see the package comment.
func (s session) checkTTL(ttl time.Duration) error {
	if ttl <= s.timeout/3 {
		return nil
	}
	return fmt.Errorf("%w: TTL %v is more than a third of the timeout %v that the server granted", ErrTTL, ttl, s.timeout)
}

// setSession is called before any request can be sent in the session. If the id is the same, the session goes on over
// another connection. Any other id, or 0 for no session, ends the former session.
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

// awaitSession waits until there is a session, and returns it.
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

// authenticate authenticates the Backend once. The library repeats this on each further connection.
func (b *Backend) authenticate() error {
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
	b.hangUp() // when a session has expired, the library leaves its connection open
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

func (b *Backend) hangUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil {
		_ = b.last.Close()
	}
}

// handshake is a connection that parses the server's first answer, because the library does not report the session's
// timeout. The library waits for this answer for 6.7 session timeouts; a handshake closes the connection earlier.
type handshake struct {
	net.Conn
	limit   *time.Timer // closes the connection if there is no answer
	granted func(session int64, timeout time.Duration)
	rest    io.Reader // for the library, from the answer on; nil before the answer
}

// Read calls granted before the library has seen the answer, and so before the library sends a request in the session.
func (h *handshake) Read(p []byte) (int, error) {
	if h.rest == nil {
		var answer struct {
			Length, Version int32
			Timeout         int32 // in milliseconds
			Session         int64 // 0 if the former session has expired; a password follows
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

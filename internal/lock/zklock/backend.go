package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"path"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

var (
	// ErrTTL means that the Locker's TTL is more than a third of the timeout that the server granted the session, so
	// that another owner could be granted the key while a lease is still trusted.
	ErrTTL = errors.New("TTL too long for the session timeout")

	// ErrFence means that there is no such fence: the requested number is above the server's counter, or the counter is
	// too large for a fence.
	ErrFence = errors.New("fence out of range")
)

// Options of a Backend. The zero value is a good one.
type Options struct {
	// SessionTimeout is the timeout that the Backend requests for its session. It is how long a crashed holder blocks
	// its keys, and has to be at least three times the Locker's TTL. A server grants between 2 and 20 of its ticks, by
	// default 4 s to 40 s. Default 30 s.
	SessionTimeout time.Duration

	// Root is the path of the node below which each key has its own. It is created if it is missing. Lockers that have
	// to exclude each other use the same. Default "/locks".
	Root string

	// AuthScheme and AuthCredentials tell the servers who the Backend is, as addauth does in ZooKeeper's shell:
	// "digest" and "user:password". Only clients with the same credentials can then see, take and delete the nodes that
	// the Backend creates. Default: none, and every client can.
	AuthScheme, AuthCredentials string

	// Dial opens a connection to one server, over TLS for example. Default net.DialTimeout.
	Dial zk.Dialer

	// Trace is called after each create, children, watch, set and delete, with its answer or error, by many goroutines
	// at once; nil for not at all.
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
	work sync.WaitGroup // calls under way

	authenticating sync.Mutex
	authenticated  bool // guarded by authenticating

	mu      sync.Mutex // never held during I/O
	session session
	places  map[ticket]*place
	last    net.Conn // the latest connection
}

// New returns a Backend with its own session on the servers, each a host:port, port 2181 by default. It does not wait
// for a connection: the calls do. The error is that of an option, or of a host name that cannot be resolved.
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
		opt:     o,
		acl:     zk.WorldACL(zk.PermAll),
		session: session{ended: make(chan struct{})},
		places:  make(map[ticket]*place),
	}
	if o.AuthScheme != "" {
		b.acl = zk.AuthACL(zk.PermAll) // for the creator's credentials
	}
	b.open, b.shut = context.WithCancel(context.Background())
	// Its events are not read, and the library drops them: the same shows in answers, in watches and in the handshake.
	conn, events, err := zk.Connect(servers, o.SessionTimeout,
		zk.WithDialer(b.dial), zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		b.shut()
		return nil, err
	}
	b.conn, b.events = conn, events
	return b, nil
}

// Close ends the session, and with it all nodes. It takes a few seconds at most. A server that cannot be reached keeps
// the nodes for the session's timeout.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.shut()
	b.mu.Unlock()
	b.conn.Close()
	b.hangUp()
	for range b.events { // closed by the library's last goroutine
	}
	b.work.Wait()
	b.setSession(0, 0)
	return nil
}

// trace calls Options.Trace after a command.
func (b *Backend) trace(command, path, answer string, err error) {
	if err != nil {
		answer = err.Error()
	}
	if b.opt.Trace != nil {
		b.opt.Trace(command, path, answer)
	}
}

// dir is the path of a key's node.
func (b *Backend) dir(key string) string { return path.Join(b.opt.Root, escape(key)) }

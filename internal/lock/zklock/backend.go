package zklock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
)

// Backend is a lock.Backend that keeps leases in ZooKeeper 3.6 or later. See the
// package comment for its promises. It may be used by many goroutines at once.
type Backend struct {
	opt      Options
	conn     *zk.Conn
	events   <-chan zk.Event
	dialer   *dialer
	sessions sessions

	open context.Context // ends with Close
	shut context.CancelFunc
	work sync.WaitGroup // calls under way, watches, and removals that go on

	lastSequence int32 // beyond it a key's node is made anew

	mu      sync.Mutex // never held during I/O
	places  map[ticket]*place
	watches map[string]<-chan struct{} // by path; closed when the node is gone

	watching atomic.Int64 // as many watches as the library has, or more
}

var _ lock.Backend = (*Backend)(nil)

// maxSequence leaves room below the largest number that ZooKeeper counts to, at
// which it gives out the same one again and again.
const maxSequence = 2_000_000_000

// New returns a Backend with a session of its own on the servers, each a
// host:port (port 2181 where it is left out). It does not wait for a connection:
// whoever needs one does. The error is that of an option, or of a host name that
// cannot be looked up.
func New(servers []string, o Options) (*Backend, error) {
	if len(servers) == 0 {
		return nil, errors.New("zklock: servers: want at least one")
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	open, shut := context.WithCancel(context.Background())
	b := &Backend{
		opt:          o,
		open:         open,
		shut:         shut,
		lastSequence: maxSequence,
		places:       make(map[ticket]*place),
		watches:      make(map[string]<-chan struct{}),
	}
	patience := min(max(o.SessionTimeout/3, time.Second), 5*time.Second)
	b.dialer = &dialer{dial: o.Dial, patience: patience, granted: b.granted}
	var err error
	// Its events are not read: each thing that they tell shows in an answer, in a
	// watch, or in the handshake. The library drops those that nobody takes.
	b.conn, b.events, err = zk.Connect(servers, o.SessionTimeout,
		zk.WithDialer(b.dialer.open), zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		shut()
		return nil, err
	}
	return b, nil
}

// granted takes what a server grants on a new connection. It reports whether the
// library may have watches to tell it again.
func (b *Backend) granted(s session) (watching bool) {
	return b.sessions.set(s) && b.watching.Load() > 0
}

// Close ends the session, and with it all nodes. It takes a few seconds at most;
// a server that cannot be reached meanwhile keeps them for the session's timeout.
func (b *Backend) Close() error {
	b.mu.Lock()
	if b.closed() {
		b.mu.Unlock()
		return nil
	}
	b.shut()
	b.mu.Unlock()
	b.conn.Close()
	b.dialer.close()
	for range b.events { // closed by the library's last goroutine
	}
	b.work.Wait()
	b.sessions.set(session{})
	return nil
}

func (b *Backend) closed() bool { return b.open.Err() != nil }

// background runs fn in a goroutine that Close waits for. It reports false,
// without running it, if the Backend is closed. The caller holds b.mu.
func (b *Backend) background(fn func()) bool {
	if b.closed() {
		return false
	}
	b.work.Go(fn)
	return true
}

// dir is the path of a key's node.
func (b *Backend) dir(key string) string { return b.opt.Root + "/" + escape(key) }

// silent drops what the library logs.
type silent struct{}

func (silent) Printf(string, ...any) {}

package zklock

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
)

// ErrTTL means that the Locker's TTL is more than a third of the timeout that the server granted to the session: another
// owner could get the key while a lease is still trusted.
var ErrTTL = errors.New("TTL too long for the session timeout")

// Options of a Backend. The zero value works.
type Options struct {
	// SessionTimeout is the timeout that the Backend requests for its session: a crashed holder blocks its keys for this long.
	// It must be at least three times the Locker's TTL. A server grants 2 to 20 ticks, by default 4 s to 40 s. Default 30 s.
	SessionTimeout time.Duration

	// Root is the path of the node below which each key has its node. It is created if it is missing. Lockers that exclude
	// each other need the same Root. Default "/locks".
	Root string

	// Dial opens a connection to one server, over TLS for example. Default net.DialTimeout.
	Dial zk.Dialer

	// Trace is called after each create, children, watch, set and delete, with the answer or error, by many goroutines.
	Trace func(command, path, answer string)
}

// Backend is a lock.Backend that keeps leases in ZooKeeper. It may be used by many goroutines at once.
type Backend struct {
	opt     Options
	conn    *zk.Conn
	timeout atomic.Int64 // of the session, as the server granted it, in milliseconds
	closed  atomic.Bool

	mu     sync.Mutex // never held during I/O
	places map[[2]string]*place
}

// New returns a Backend with its own session on the servers, each a host:port, port 2181 by default. It does not wait for a
// connection; later calls do. New fails if there is no server or a host name cannot be resolved.
func New(servers []string, o Options) (b *Backend, err error) {
	o.SessionTimeout = cmp.Or(o.SessionTimeout, 30*time.Second)
	o.Root = path.Join("/", cmp.Or(o.Root, "locks"))
	if o.Dial == nil {
		o.Dial = net.DialTimeout
	}
	b = &Backend{opt: o, places: make(map[[2]string]*place)}
	// The events are not read, and the library drops them: answers and watches show the same.
	b.conn, _, err = zk.Connect(servers, o.SessionTimeout, zk.WithDialer(b.dial), zk.WithLogger(log.New(io.Discard, "", 0)))
	return b, err
}

// Close ends the session and its nodes, in a few seconds at most. Without a server, they end by the session's timeout.
func (b *Backend) Close() error {
	b.closed.Store(true)
	b.conn.Close()
	return nil
}

// dial opens the library's connections.
func (b *Backend) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := b.opt.Dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	// The library would wait for the server's first answer for 6.7 session timeouts.
	limit := time.AfterFunc(5*time.Second, func() { _ = conn.Close() })
	return &handshake{Conn: conn, timeout: &b.timeout, limit: limit}, nil
}

// handshake is a connection that reads the session's timeout from the server's first answer: the library hides it.
type handshake struct {
	net.Conn
	timeout *atomic.Int64
	limit   *time.Timer // closes the connection if there is no answer
	head    []byte      // of the answer: length, version and timeout, of four bytes each
}

// Read sets the timeout before the library has seen the answer, and so before the library sends a request in the session.
func (h *handshake) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if len(h.head) < 12 {
		if h.head = append(h.head, p[:n]...); len(h.head) >= 12 {
			h.limit.Stop()
			h.timeout.Store(int64(binary.BigEndian.Uint32(h.head[8:])))
		}
	}
	return n, err
}

// Acquire implements lock.Backend. It goes on after lost connections and sessions for as long as ctx allows.
func (b *Backend) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	return do(ctx, b, c, func(p *place) (lock.Grant, error) {
		g, err := b.ask(p, c)
		for retryable(err) && ctx.Err() == nil && !b.closed.Load() {
			g, err = b.ask(p, c)
		}
		return g, err
	})
}

// ask goes through the recipe once: it enters the queue, looks which node is first, and watches the node before its own.
//
// The first owner holds the key if a write after the request has proved that the session is alive. Creating the node is
// such a write, and the zxid of the queue's last change is at least as high. The next holder's zxid is higher, because
// the queue has changed by then. If an earlier request created the node, touch does the write.
func (b *Backend) ask(p *place, c lock.Claim) (g lock.Grant, err error) {
	session, timeout := b.conn.SessionID(), time.Duration(b.timeout.Load())*time.Millisecond
	if session != 0 && c.TTL > timeout/3 {
		return g, fmt.Errorf("%w: TTL %v is more than a third of the timeout %v that the server granted", ErrTTL, c.TTL, timeout)
	}
	create := !p.entered
	if create {
		if err := b.create(p); err != nil {
			return g, err
		}
	}
	nodes, mine, changed, err := b.look(p)
	switch {
	case err != nil, mine < 0:
		return g, cmp.Or(err, lock.ErrLost)
	case mine > 0:
		g = lock.Grant{Held: true, Retry: c.TTL}
		if !c.Queue {
			_, _ = b.remove(p)
			return g, nil
		}
		// The node has no children. A watch of the node itself would also fire at each renewal.
		_, _, p.gone, err = b.conn.ChildrenW(nodes[mine-1])
		b.trace("watch", nodes[mine-1], "OK", err)
	case create:
		g.Fence = changed << 16
	default:
		g.Fence, err = b.touch(nodes[0], session)
	}
	if err == nil && b.conn.SessionID() != session { // the answers may come from two sessions
		err = zk.ErrSessionExpired
	}
	return g, err
}

// create adds the owner's node to the queue. The nodes above it are containers, which a server removes when empty.
func (b *Backend) create(p *place) error {
	wanted := b.dir(p.key) + "/" + escape(p.owner) + "-"
	made, err := b.conn.Create(wanted, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	b.trace("create", wanted, path.Base(made), err)
	if !errors.Is(err, zk.ErrNoNode) {
		p.doubt = retryable(err) && !errors.Is(err, zk.ErrNoServer) // ErrNoServer: the request was never sent
		p.entered = err == nil || p.doubt
		return err
	}
	above := ""
	for name := range strings.SplitSeq(b.dir(p.key)[1:], "/") {
		above += "/" + name
		_, made := b.conn.CreateContainer(above, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
		if made != nil && !errors.Is(made, zk.ErrNodeExists) {
			return made
		}
	}
	return err
}

// look returns the paths of the nodes in the queue, in order, the index of the owner's node (-1: none), and the zxid of the
// queue's last change.
func (b *Backend) look(p *place) (nodes []string, mine int, changed int64, err error) {
	dir := b.dir(p.key)
	if p.doubt { // without Sync, a server may not know yet what was sent over a lost connection
		if _, err := b.conn.Sync(dir); err != nil {
			return nil, 0, 0, err
		}
	}
	names, stat, err := b.conn.Children(dir)
	b.trace("children", dir, strings.Join(names, " "), err)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, 0, 0, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return len(name) <= 11 }) // another program's
	slices.SortFunc(names, func(x, y string) int { return cmp.Compare(x[len(x)-10:], y[len(y)-10:]) })
	for _, name := range names {
		nodes = append(nodes, dir+"/"+name)
	}
	mine = slices.IndexFunc(nodes, func(node string) bool { return ownerOf(node) == escape(p.owner) })
	p.doubt, p.entered = false, mine >= 0
	return nodes, mine, stat.Pzxid, nil
}

// touch writes empty data to the owner's node, and returns the fence of the write. A server that is cut off from the
// others answers reads for a while, although the session may have ended. A write passes the leader, which knows.
func (b *Backend) touch(node string, session int64) (int64, error) {
	stat, err := b.conn.Set(node, nil, -1)
	b.trace("set", node, "OK", err)
	switch same := b.conn.SessionID() == session; {
	case err == nil && same && stat.EphemeralOwner == session: // no node of a former session, which will be deleted soon
		return stat.Mzxid << 16, nil
	case err == nil, !same, errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrSessionExpired):
		return 0, lock.ErrLost
	}
	return 0, err
}

// Wait implements lock.Backend. It returns when the node before the owner's is gone, which wakes no other waiter.
func (b *Backend) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	gone, _ := do(ctx, b, c, func(p *place) (<-chan zk.Event, error) { return p.gone, nil })
	select {
	case <-gone:
	case <-time.After(g.Retry):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Renew implements lock.Backend. Each renewal raises the fence. A fence above the servers' counter is an error.
func (b *Backend) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	return do(ctx, b, c, func(p *place) (int64, error) {
		session := b.conn.SessionID()
		nodes, mine, _, err := b.look(p)
		if err != nil || mine != 0 {
			return 0, cmp.Or(err, lock.ErrLost)
		}
		fence, err := b.touch(nodes[0], session)
		if err == nil && c.Fence > fence {
			err = fmt.Errorf("fence %d is above the servers' counter %d", c.Fence, fence)
		}
		return fence, err
	})
}

// Release implements lock.Backend. If ctx ends before the server has answered, the Backend goes on in the background
// until the node is gone: a node that stays would block the key for as long as the process lives.
func (b *Backend) Release(ctx context.Context, c lock.Claim) error {
	_, err := do(ctx, b, c, func(p *place) (none struct{}, err error) {
		if !p.entered {
			return none, lock.ErrLost
		}
		return b.remove(p)
	})
	return err
}

// remove deletes the owner's node, and tries again until the node is gone. ErrLost: the node did not hold the key.
func (b *Backend) remove(p *place) (none struct{}, err error) {
	err = lock.ErrLost
	for nap := 10 * time.Millisecond; !b.closed.Load(); nap = min(2*nap, time.Second) {
		nodes, mine, _, failed := b.look(p)
		if failed == nil && mine >= 0 {
			failed = b.conn.Delete(nodes[mine], -1) // whatever its data
			b.trace("delete", nodes[mine], "OK", failed)
			if mine == 0 && !errors.Is(failed, zk.ErrNoNode) {
				err = nil // also if the answer was lost: this deletion or the next one deletes the node
			}
		}
		if failed == nil {
			p.entered = false
			return none, err
		}
		time.Sleep(nap)
	}
	return none, lock.ErrClosed
}

// Holder implements lock.Backend. Since and Remaining are not known: a lease lasts as long as its session.
func (b *Backend) Holder(ctx context.Context, key string) (lock.Holder, error) {
	return do(ctx, b, lock.Claim{Key: key}, func(p *place) (h lock.Holder, err error) {
		nodes, _, _, err := b.look(p)
		if err == nil && len(nodes) > 0 {
			h.Owner, err = url.PathUnescape(ownerOf(nodes[0]))
		}
		return h, err
	})
}

// Evict implements lock.Backend. It deletes the owner's node.
func (b *Backend) Evict(ctx context.Context, key, owner string) error {
	_, err := do(ctx, b, lock.Claim{Key: key, Owner: owner}, b.remove)
	return err
}

// place is an owner's place in the queue of a key. The Backend keeps a place while it may have a node, and while calls
// are in progress. Its calls run one after the other: the library's calls cannot be cancelled, so that a call has to
// wait even for a call whose caller has given up.
type place struct {
	key, owner string
	last       chan struct{}   // closed when the latest call has ended; guarded by Backend.mu
	entered    bool            // the owner may have a node
	doubt      bool            // the answer to the creation of the node was lost
	gone       <-chan zk.Event // closed when the node before the owner's, or the session, is gone
}

// do runs a call of the library, which has no time limit, after the earlier calls of the same claim. If ctx ends first, do
// returns, and the call goes on.
func do[T any](ctx context.Context, b *Backend, c lock.Claim, call func(*place) (T, error)) (T, error) {
	var value, none T
	var err error
	ended := make(chan struct{})
	id := [2]string{c.Key, c.Owner}
	b.mu.Lock()
	p := b.places[id]
	if p == nil {
		p = &place{key: c.Key, owner: c.Owner}
		b.places[id] = p
	}
	before := p.last
	p.last = ended
	b.mu.Unlock()
	go func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		value, err = call(p)
		b.mu.Lock()
		defer b.mu.Unlock()
		if p.last == ended && !p.entered {
			delete(b.places, id)
		}
	}()
	select {
	case <-ended:
		return value, err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// retryable reports whether a request with this error may be sent again: it had no effect, or its effect is unknown.
func retryable(err error) bool {
	unknown := []error{zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved, zk.ErrNoNode, lock.ErrLost}
	_, network := errors.AsType[net.Error](err)
	return network || slices.Contains(unknown, err)
}

func (b *Backend) trace(command, path, answer string, err error) {
	if err != nil {
		answer = err.Error()
	}
	if b.opt.Trace != nil {
		b.opt.Trace(command, path, answer)
	}
}

func (b *Backend) dir(key string) string { return path.Join(b.opt.Root, escape(key)) }

// escape makes any text a legal name of a node. No two texts have the same name.
func escape(text string) string {
	return cmp.Or(strings.ReplaceAll(url.PathEscape(text), ".", "%2E"), "%") // "." and ".." are not names
}

// ownerOf returns the escaped owner of a node, <owner>-<number>: the server appends a number of ten digits.
func ownerOf(node string) string { return path.Base(node[:len(node)-11]) }

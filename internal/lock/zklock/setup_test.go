package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/lock/zklock"
	"example.com/shop/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }

// patience bounds every wait. Nothing takes this long unless it hangs.
const patience = 20 * time.Second

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// wait fails the test if the signal does not come.
func wait[T any](t testing.TB, what string, signal <-chan T) T {
	t.Helper()
	select {
	case v := <-signal:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing happened for %v", what, patience)
		panic("not reached")
	}
}

// newRoot returns a path that no other test uses.
func newRoot() string { return fmt.Sprintf("/test/%016x", rand.Uint64()) }

// newPrivateRoot is newRoot for a node with no other above it, which would also be private.
func newPrivateRoot() string { return fmt.Sprintf("/test-%016x", rand.Uint64()) }

// connect returns a Backend that is closed at the end of the test. Servers that are given twice are dialled again at
// once, where the library would wait for a second before it tries a single one again.
func connect(t testing.TB, addr string, o zklock.Options) *zklock.Backend {
	t.Helper()
	return connectAll(t, []string{addr, addr}, o)
}

func connectAll(t testing.TB, addrs []string, o zklock.Options) *zklock.Backend {
	t.Helper()
	b, err := zklock.New(addrs, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close backend: %v", err)
		}
	})
	return b
}

// newLocker returns one that is closed at the end of the test, with its Backend.
func newLocker(t testing.TB, b lock.Backend, o lock.Options) *lock.Locker {
	t.Helper()
	l := lock.New(b, o)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

// acquire asks until there is an answer: a server that was away, or a machine that stood still, can cost a request all
// of its time.
func acquire(t testing.TB, l *lock.Locker, key string) *lock.Lease {
	t.Helper()
	for ctx := bounded(t); ; {
		lease, err := l.Acquire(ctx, key)
		if err == nil {
			return lease
		}
		if !errors.Is(err, lock.ErrNoAnswer) || ctx.Err() != nil {
			t.Fatalf("Acquire: %v", err)
		}
	}
}

func mustRelease(t testing.TB, lease *lock.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// renew asks until there is an answer, on whichever connection: nil or ErrLost.
func renew(t testing.TB, b *zklock.Backend, c lock.Claim) error {
	t.Helper()
	for ctx := bounded(t); ; {
		_, err := b.Renew(ctx, c)
		if err == nil || errors.Is(err, lock.ErrLost) || ctx.Err() != nil {
			return err
		}
	}
}

// tree is a plain client that looks at the nodes.
type tree struct {
	*zk.Conn
	t testing.TB
}

func lookAt(t testing.TB, addr string) tree {
	t.Helper()
	conn, events, err := zk.Connect([]string{addr}, time.Minute, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		for range events {
		}
	})
	return tree{conn, t}
}

// under returns the names of a node's children; none if it does not exist.
func (v tree) under(path string) []string {
	v.t.Helper()
	var names []string
	err := v.repeat(func() (err error) { names, _, err = v.Children(path); return err })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		v.t.Fatalf("children of %s: %v", path, err)
	}
	return names
}

// awaitCount waits until the node has n children.
func (v tree) awaitCount(path string, n int) []string {
	v.t.Helper()
	for {
		var names []string
		var changed <-chan zk.Event
		err := v.repeat(func() (err error) { names, _, changed, err = v.ChildrenW(path); return err })
		if err != nil && (n > 0 || !errors.Is(err, zk.ErrNoNode)) { // ZooKeeper deletes an empty container node
			v.t.Fatalf("children of %s: %v", path, err)
		}
		if len(names) == n {
			return names
		}
		wait(v.t, fmt.Sprintf("%d nodes under %s, now %q", n, path, names), changed)
	}
}

// repeat asks until the connection lasts for an answer.
func (v tree) repeat(ask func() error) error {
	v.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := ask()
		lost := errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionMoved)
		if !lost || time.Now().After(end) {
			return err
		}
	}
}

// clear removes the node and all below it.
func (v tree) clear(path string) {
	v.t.Helper()
	for _, name := range v.under(path) {
		v.clear(path + "/" + name)
	}
	if err := v.Delete(path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		v.t.Fatalf("delete %s: %v", path, err)
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func TestBackend(t *testing.T) {
	locktest.Run(t, func(t *testing.T) locktest.Harness {
		addr, root := testserver.ZooKeeper(t), newRoot()
		return locktest.Harness{
			Connect: func(t testing.TB) lock.Backend {
				return &onDemand{t: t, proxy: newProxy(t, addr), root: root}
			},
			Cut: func(b lock.Backend) { b.(*onDemand).proxy.freeze() },
			// Not Expires: a lease outlives its TTL for as long as its session is heard of, also without renewals. Not
			// Raises: zxids cannot be set.
			Notifies: true,
			Fences:   true,
			Forget: func(t testing.TB) {
				t.Helper()
				lookAt(t, addr).clear(root)
			},
		}
	})
}

// onDemand is a Backend that connects when the first claim tells its TTL, so that the session is as short as it may be:
// the suite has TTLs that it waits for, and others of some minutes.
type onDemand struct {
	t     testing.TB
	proxy *proxy
	root  string

	once    sync.Once
	backend *zklock.Backend
}

func (d *onDemand) on(c lock.Claim) *zklock.Backend {
	d.once.Do(func() {
		d.backend = connect(d.t, d.proxy.addr, zklock.Options{Root: d.root, SessionTimeout: 3 * c.TTL})
	})
	return d.backend
}

func (d *onDemand) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	return d.on(c).Acquire(ctx, c)
}

func (d *onDemand) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	return d.on(c).Wait(ctx, c, g)
}

func (d *onDemand) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	return d.on(c).Renew(ctx, c)
}

func (d *onDemand) Release(ctx context.Context, c lock.Claim) error { return d.on(c).Release(ctx, c) }

func (d *onDemand) Close() error {
	d.once.Do(func() {}) // nothing was asked: nothing is to close
	if d.backend == nil {
		return nil
	}
	return d.backend.Close()
}

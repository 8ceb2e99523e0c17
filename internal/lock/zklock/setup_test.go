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

func TestBackend(t *testing.T) {
	locktest.Run(t, func(t *testing.T) locktest.Harness {
		addr, root := testserver.ZooKeeper(t), newRoot()
		return locktest.Harness{
			Connect: func(t testing.TB) lock.Backend {
				return &onDemand{t: t, link: testserver.LinkTo(t, addr), root: root}
			},
			Cut: func(b lock.Backend) { b.(*onDemand).link.Silence(true, true) },
			// Not Expires: a lease outlives its TTL for as long as its session is heard of, also without renewals.
			Notifies: true,
			Fences:   true,
			Forget:   func(t testing.TB) { lookAt(t, addr).clear(root) },
		}
	})
}

// onDemand is a Backend that connects when the first claim tells its TTL, so that the session is as short as it may be:
// the suite has TTLs that it waits for, and others of some minutes.
type onDemand struct {
	*zklock.Backend // nil until then
	t               testing.TB
	link            *testserver.Link
	root            string
	once            sync.Once
}

func (d *onDemand) on(ttl time.Duration) *zklock.Backend {
	d.once.Do(func() { d.Backend = connect(d.t, d.link.Addr, zklock.Options{Root: d.root, SessionTimeout: 3 * ttl}) })
	return d.Backend
}

func (d *onDemand) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	return d.on(c.TTL).Acquire(ctx, c)
}

func (d *onDemand) Holder(ctx context.Context, key string) (lock.Holder, error) {
	return d.on(10*patience).Holder(ctx, key)
}

func (d *onDemand) Close() error {
	if d.once.Do(func() {}); d.Backend == nil {
		return nil
	}
	return d.Backend.Close()
}

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

// connect returns a Backend that is closed at the end of the test. The server is given twice, so that it is dialled again
// at once: the library waits for a second before it tries a single one again.
func connect(t testing.TB, addr string, o zklock.Options) *zklock.Backend {
	t.Helper()
	return connectAll(t, []string{addr, addr}, o)
}

func connectAll(t testing.TB, addrs []string, o zklock.Options) *zklock.Backend {
	t.Helper()
	b, err := zklock.New(addrs, o)
	testserver.Must(t, err)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close backend: %v", err)
		}
	})
	return b
}

// newLocker returns a Locker that is closed at the end of the test, with its Backend.
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

// claim returns the claim of an owner that waits. Its TTL is a second.
func claim(key, owner string) lock.Claim {
	return lock.Claim{Key: key, Owner: owner, TTL: time.Second, Queue: true}
}

// mustGrant acquires the key in the name of me.
func mustGrant(t *testing.T, b *zklock.Backend, key string) lock.Grant {
	t.Helper()
	return ask(t, b, claim(key, "me"), false)
}

// ask fails the test unless the key is granted, or held by another.
func ask(t *testing.T, b *zklock.Backend, c lock.Claim, held bool) lock.Grant {
	t.Helper()
	g, err := b.Acquire(bounded(t), c)
	if err != nil || g.Held != held {
		t.Fatalf("Acquire %q by %q: %+v, %v; want held by another: %t", c.Key, c.Owner, g, err, held)
	}
	return g
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

// mustEndWithContext calls with a context that ends soon. late is far later, for a busy machine, and far earlier than the
// library's own time limits.
func mustEndWithContext(t *testing.T, name string, call func(context.Context) error) {
	t.Helper()
	const soon, late = 50 * time.Millisecond, 5 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	if took := time.Since(began); took > late {
		t.Errorf("%s took %v, want %v", name, took, soon)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: %v, want DeadlineExceeded", name, err)
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
	testserver.Must(t, err)
	t.Cleanup(func() {
		conn.Close()
		for range events {
		}
	})
	return tree{conn, t}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// count fails the test unless the node has n children; none if it does not exist.
func (v tree) count(path string, n int) {
	v.t.Helper()
	names, _, err := v.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		v.t.Fatalf("children of %s: %v", path, err)
	}
	if len(names) != n {
		v.t.Errorf("%d nodes under %s, want %d: %q", len(names), path, n, names)
	}
}

// awaitCount waits until the node has n children.
func (v tree) awaitCount(path string, n int) {
	v.t.Helper()
	for {
		names, _, changed, err := v.ChildrenW(path)
		if errors.Is(err, zk.ErrNoNode) { // made in a moment, or a container that was removed
			_, _, changed, err = v.ExistsW(path)
		}
		if err != nil {
			v.t.Fatalf("children of %s: %v", path, err)
		}
		if len(names) == n {
			return
		}
		wait(v.t, fmt.Sprintf("%d nodes under %s, now %q", n, path, names), changed)
	}
}

// clear removes the node and all below it.
func (v tree) clear(path string) {
	v.t.Helper()
	names, _, err := v.Children(path)
	for _, name := range names {
		v.clear(path + "/" + name)
	}
	if err == nil {
		err = v.Delete(path, -1)
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		v.t.Fatalf("clear %s: %v", path, err)
	}
}

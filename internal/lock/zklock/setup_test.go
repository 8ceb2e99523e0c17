package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
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
	d.once.Do(func() { d.Backend = connect(d.t, zklock.Options{Root: d.root, SessionTimeout: 3 * ttl}, d.link.Addr) })
	return d.Backend
}

func (d *onDemand) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	return d.on(c.TTL).Acquire(ctx, c)
}

func (d *onDemand) Holder(ctx context.Context, key string) (lock.Holder, error) {
	return d.on(10*patience).Holder(ctx, key)
}

func (d *onDemand) Close() error { return d.on(patience).Close() }

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

func newRoot() string { return fmt.Sprintf("/test/%016x", rand.Uint64()) }

// connect returns a Backend that is closed at the end of the test. Each server is given twice: the library waits for a
// second before it dials a single one again.
func connect(t testing.TB, o zklock.Options, addrs ...string) *zklock.Backend {
	t.Helper()
	b, err := zklock.New(append(addrs, addrs...), o)
	testserver.Must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// linked returns a Backend behind a link, and a plain client that looks at the nodes below the root.
func linked(t testing.TB, session time.Duration) (*zklock.Backend, *testserver.Link, tree, string) {
	t.Helper()
	addr, root := testserver.ZooKeeper(t), newRoot()
	link := testserver.LinkTo(t, addr)
	return connect(t, zklock.Options{Root: root, SessionTimeout: session}, link.Addr), link, lookAt(t, addr), root
}

// claim returns the claim of an owner that waits. Its TTL is a second.
func claim(key, owner string) lock.Claim {
	return lock.Claim{Key: key, Owner: owner, TTL: time.Second, Queue: true}
}

// ask fails the test unless the key is granted, or held by another.
func ask(t testing.TB, b lock.Backend, c lock.Claim, held bool) lock.Grant {
	t.Helper()
	g, err := b.Acquire(bounded(t), c)
	if err != nil || g.Held != held {
		t.Fatalf("Acquire %q by %q: %+v, %v; want held by another: %t", c.Key, c.Owner, g, err, held)
	}
	return g
}

// renew asks until there is an answer, on whichever connection: nil or ErrLost.
func renew(t testing.TB, b lock.Backend, c lock.Claim) (err error) {
	t.Helper()
	testserver.Until(t, "a renewal is answered", patience, func() bool {
		_, err = b.Renew(bounded(t), c)
		return err == nil || errors.Is(err, lock.ErrLost)
	})
	return err
}

// tree is a plain client that looks at the nodes.
type tree struct {
	*zk.Conn
	t testing.TB
}

func lookAt(t testing.TB, addr string) tree {
	t.Helper()
	conn, _, err := zk.Connect([]string{addr}, time.Minute, zk.WithLogger(log.New(io.Discard, "", 0)))
	testserver.Must(t, err)
	t.Cleanup(conn.Close)
	return tree{conn, t}
}

// await waits until the node has n children; none if it does not exist.
func (v tree) await(path string, n int) {
	v.t.Helper()
	testserver.Until(v.t, fmt.Sprintf("%d nodes under %s", n, path), patience, func() bool {
		names, _, err := v.Children(path)
		return len(names) == n && (err == nil || errors.Is(err, zk.ErrNoNode))
	})
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

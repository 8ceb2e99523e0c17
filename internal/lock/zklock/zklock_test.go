package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/zklock"
	"example.com/shop/internal/testserver"
)

// "If an answer is lost, the Backend looks for the owner's node before it creates another one." A lost answer to a
// deletion is no lost lease. "A lost connection does not end a lease."
func TestBackend_AnswerLost(t *testing.T) {
	t.Parallel()
	b, link, nodes, root := linked(t, 0)
	c := claim("key", "me")
	ask(t, b, c, false) // makes the key's node
	testserver.Must(t, b.Release(bounded(t), c))
	var lost atomic.Int32
	lose := func(operation string) { // loses the answer to the next request of this kind, and the connection
		var once sync.Once
		link.Judge(func(request string) (fate testserver.Fate) {
			if len(request) > 12 && request[8:12] == operation {
				once.Do(func() { fate = testserver.Mute; lost.Add(1) })
			}
			return fate
		})
	}
	lose("\x00\x00\x00\x01") // create
	ask(t, b, c, false)
	nodes.await(root+"/key", 1)
	link.Cut(false)
	testserver.Must(t, renew(t, b, c))
	lose("\x00\x00\x00\x02") // delete
	if err := b.Release(bounded(t), c); err != nil || lost.Load() != 2 {
		t.Errorf("Release: %v after %d lost answers", err, lost.Load())
	}
	nodes.await(root+"/key", 0)
}

// "The end of the session ends all of its leases, and its waiters go to the queue's end." A creation that could not be
// sent before the session ended is carried out in the next one.
func TestBackend_SessionEnds(t *testing.T) {
	t.Parallel()
	b, link, nodes, root := linked(t, 4*time.Second)
	other := connect(t, zklock.Options{Root: root}, testserver.ZooKeeper(t))
	waits, next := claim("line", "waits"), claim("line", "next")
	ask(t, b, claim("first", "me"), false)
	ask(t, b, claim("second", "me"), false)
	ask(t, other, claim("line", "holder"), false)
	ask(t, b, waits, true)
	link.Silence(true, true)
	link.Cut(false)
	created := make(chan error, 1)
	go func() { _, err := b.Acquire(bounded(t), claim("new", "me")); created <- err }()
	nodes.await(root+"/first", 0)
	ask(t, other, next, true)
	link.Heal()

	testserver.Must(t, wait(t, "Acquire", created))
	nodes.await(root+"/new", 1)
	renewed, released := renew(t, b, claim("first", "me")), b.Release(bounded(t), claim("second", "me"))
	if !errors.Is(renewed, lock.ErrLost) || !errors.Is(released, lock.ErrLost) {
		t.Errorf("Renew and Release after the session's end: %v and %v, want ErrLost", renewed, released)
	}
	never := lock.Grant{Held: true, Retry: time.Hour} // no safety net in this test
	testserver.Must(t, b.Wait(bounded(t), waits, never))
	ask(t, b, waits, true)
	testserver.Must(t, other.Release(bounded(t), claim("line", "holder")))
	ask(t, other, next, false)
	ask(t, b, waits, true)
	testserver.Must(t, other.Release(bounded(t), next))
	testserver.Must(t, b.Wait(bounded(t), waits, never))
	ask(t, b, waits, false)
}

// "Each call ends with its context, although the calls of the library do not: they go on in the background." "A node that
// is not wanted any more is deleted in the background, until the server has confirmed the deletion."
func TestBackend_CallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	b, link, nodes, root := linked(t, 0)
	fresh, held, renewed, inLine := claim("new", "me"), claim("held", "me"), claim("renewed", "me"), claim("in line", "me")
	ask(t, b, held, false)
	ask(t, b, renewed, false)
	ask(t, b, claim("in line", "other"), false)
	g := ask(t, b, inLine, true)

	link.Silence(true, true)
	acquire := func(ctx context.Context) error { _, err := b.Acquire(ctx, fresh); return err }
	endsWithContext(t, "Acquire", acquire)
	endsWithContext(t, "Acquire again", acquire)
	endsWithContext(t, "Release of what may be held", func(ctx context.Context) error { return b.Release(ctx, fresh) })
	endsWithContext(t, "Acquire of what is being released", acquire)
	endsWithContext(t, "Renew", func(ctx context.Context) error { _, err := b.Renew(ctx, renewed); return err })
	endsWithContext(t, "Wait", func(ctx context.Context) error { return b.Wait(ctx, inLine, g) })
	endsWithContext(t, "Release in line", func(ctx context.Context) error { return b.Release(ctx, inLine) })
	endsWithContext(t, "Release", func(ctx context.Context) error { return b.Release(ctx, held) })
	link.Cut(false)
	link.Heal()

	nodes.await(root+"/held", 0)
	nodes.await(root+"/in%20line", 1)
	// The creation may not be over. A second release finds the end of the first.
	if err := b.Release(bounded(t), fresh); err != nil && !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want nil or ErrLost", err)
	}
	nodes.await(root+"/new", 0)
	if err := renew(t, b, renewed); err != nil {
		t.Errorf("Renew of what no holder released: %v", err)
	}
}

// endsWithContext calls with a context that ends soon. The call may take far longer, on a busy machine, but not as long as
// the library's own time limits.
func endsWithContext(t *testing.T, name string, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("%s: %v after %v, want DeadlineExceeded", name, err, time.Since(began))
	}
}

// "Each call ends with its context", also where no server answers: one accepts connections and is silent, one does not
// exist. "Close ends the session and its nodes, in a few seconds at most."
func TestBackend_NoServer(t *testing.T) {
	t.Parallel()
	mute, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testserver.Must(t, err)
	defer func() { _ = mute.Close() }()
	for _, addr := range []string{mute.Addr().String(), "127.0.0.1:1"} {
		b := connect(t, zklock.Options{}, addr)
		endsWithContext(t, addr, func(ctx context.Context) error { _, err := b.Acquire(ctx, claim("key", "me")); return err })
		began := time.Now()
		if err := b.Close(); err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("Close: %v after %v", err, time.Since(began))
		}
	}
}

// "Each renewal raises the fence. A fence above the servers' counter is an error."
func TestBackend_Raise(t *testing.T) {
	t.Parallel()
	b := connect(t, zklock.Options{Root: newRoot()}, testserver.ZooKeeper(t))
	c := claim("key", "me")
	c.Fence = ask(t, b, c, false).Fence + 65_535
	fence, err := b.Renew(bounded(t), c)
	if err != nil || fence <= c.Fence {
		t.Errorf("Renew: %v, fence %d, want more than %d", err, fence, c.Fence)
	}
	c.Fence = fence + 1<<40
	if _, err := b.Renew(bounded(t), c); err == nil || errors.Is(err, lock.ErrLost) {
		t.Errorf("Renew with a far higher fence: %v, want an error, and no loss", err)
	}
}

// "Any text can be a key and an owner": no two keys share a node, no key is refused, and no key leaves the root.
func TestBackend_AnyKey(t *testing.T) {
	t.Parallel()
	b, _, nodes, root := linked(t, 0)
	keys := []string{
		"sku:42", "a/b", "/a/b", "a%2Fb", "/", "//", ".", "..", "../..", "zookeeper", " ", "a\x00b", "größe", "\xff\xfe", "🙂",
		"%", "%2F", "-0000000001", strings.Repeat("/", lock.MaxKey),
	}
	for _, key := range keys { // each is free though all others are held
		ask(t, b, claim(key, key), false)
		if h, err := b.Holder(bounded(t), key); err != nil || h.Owner != key {
			t.Errorf("Holder of %q: %+v, %v", key, h, err)
		}
	}
	nodes.await(root, len(keys))
}

// "First come, first served, in all processes". "A release wakes one waiter. A waiter that is not woken checks the queue
// once a TTL." A holder that renews wakes no waiter. "Trace is called after each create, children, watch, set and delete,
// with the answer or error".
func TestBackend_NoHerd(t *testing.T) {
	t.Parallel()
	const waiters = 30
	addr, root := testserver.ZooKeeper(t), newRoot()
	holder := connect(t, zklock.Options{Root: root}, addr)
	var mu sync.Mutex
	var steps []string
	trace := func(command, path, answer string) {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, fmt.Sprint(command, " ", strings.TrimPrefix(path, root), " ", len(strings.Fields(answer))))
	}
	waiting := connect(t, zklock.Options{Root: root, Trace: trace}, addr)
	owner := func(i int) lock.Claim { return claim("key", fmt.Sprint("owner", i)) }
	first := ask(t, holder, owner(0), false)
	if g := ask(t, waiting, owner(1), true); g.Retry != owner(1).TTL {
		t.Errorf("a waiter asks again after %v, want the TTL", g.Retry)
	}
	soon, never := lock.Grant{Held: true, Retry: 10 * time.Millisecond}, lock.Grant{Held: true, Retry: time.Hour}
	testserver.Must(t, waiting.Wait(bounded(t), owner(1), soon))
	woken := make(chan int, waiters)
	for i := 1; i <= waiters; i++ {
		ask(t, waiting, owner(i), true)
		go func() {
			if err := waiting.Wait(bounded(t), owner(i), never); err != nil {
				t.Errorf("Wait by %d: %v", i, err)
			}
			woken <- i
		}()
	}
	for range 20 {
		testserver.Must(t, renew(t, holder, owner(0)))
	}
	testserver.Must(t, holder.Release(bounded(t), owner(0)))
	for i := 1; i <= waiters; i++ {
		if next := wait(t, "wake-up", woken); next != i {
			t.Fatalf("woke %d, want %d", next, i)
		}
		mu.Lock()
		steps = nil
		mu.Unlock()
		if g := ask(t, waiting, owner(i), false); g.Fence <= first.Fence {
			t.Errorf("fence %d after %d", g.Fence, first.Fence)
		}
		testserver.Must(t, waiting.Release(bounded(t), owner(i)))
		mu.Lock()
		looks := fmt.Sprint("children /key ", waiters-i+1)
		node := fmt.Sprintf("/key/owner%d-%010d 1", i, i)
		if want := []string{looks, "set " + node, looks, "delete " + node}; !slices.Equal(steps, want) {
			t.Errorf("steps %q, want %q", steps, want)
		}
		mu.Unlock()
	}
}

// "ErrTTL means that the Locker's TTL is more than a third of the timeout that the server granted to the session".
func TestBackend_TTLTooLong(t *testing.T) {
	t.Parallel()
	b := connect(t, zklock.Options{Root: newRoot(), SessionTimeout: 24 * time.Hour}, testserver.ZooKeeper(t)) // granted: an hour
	c := lock.Claim{Key: "key", Owner: "me", TTL: 20*time.Minute + time.Millisecond}
	if _, err := b.Acquire(bounded(t), c); !errors.Is(err, zklock.ErrTTL) || !strings.Contains(err.Error(), "1h0m0s") {
		t.Errorf("Acquire: %v, want ErrTTL and the granted timeout", err)
	}
	c.TTL = 20 * time.Minute
	ask(t, b, c, false)
}

// "The loss of a leader ends no session": on three servers, of which the one that leads is killed, a lease is renewed
// through another, and its waiter comes next.
func TestBackend_LeaderLost(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t, testserver.OpenZooKeeperEnsemble).Servers
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	b := connect(t, zklock.Options{Root: newRoot()}, addrs...)
	first, next := claim("key", "first"), claim("key", "next")
	held := ask(t, b, first, false)
	ask(t, b, next, true)
	leader := -1
	testserver.Until(t, "one of the servers leads", time.Minute, func() bool {
		leader = slices.IndexFunc(servers, func(s *testserver.Server) bool {
			answer, err := testserver.ZooKeeperStatus(t.Context(), s.Addr())
			return err == nil && strings.Contains(answer, "\nMode: leader")
		})
		return leader >= 0
	})
	testserver.Must(t, servers[leader].Do(t.Context(), testserver.Kill))
	testserver.Must(t, renew(t, b, first))
	testserver.Must(t, b.Release(bounded(t), first))
	if g := ask(t, b, next, false); g.Fence <= held.Fence {
		t.Errorf("fence %d after %d", g.Fence, held.Fence)
	}
}

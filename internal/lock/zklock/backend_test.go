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

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/zklock"
	"example.com/shop/internal/testserver"
)

// Two at once ask for a key that is free, without standing in line: one gets it, and the other leaves nothing behind.
func TestBackend_TryAcquireLeavesNothing(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes := lookAt(t, addr)
	first := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})
	second := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})
	for range 50 {
		leases := make(chan *lock.Lease, 2)
		for _, l := range []*lock.Locker{first, second} {
			go func() {
				lease, err := l.TryAcquire(bounded(t), "key")
				if err != nil && (!errors.Is(err, lock.ErrNotAcquired) || errors.Is(err, context.DeadlineExceeded)) {
					t.Errorf("TryAcquire: %v", err)
				}
				leases <- lease
			}()
		}
		for range 2 {
			if lease := wait(t, "TryAcquire", leases); lease != nil {
				mustRelease(t, lease)
			}
		}
		nodes.count(root+"/key", 0)
	}
}

// A key's node may be removed at any time: servers remove empty nodes. The node is made again, and fences go on rising.
func TestBackend_ParentRemoved(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes := lookAt(t, addr)
	locker := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})
	var last int64
	for range 3 {
		lease := acquire(t, locker, "key")
		if lease.Fence() <= last {
			t.Errorf("fence %d after %d", lease.Fence(), last)
		}
		last = lease.Fence()
		if err := nodes.Delete(root+"/key", -1); !errors.Is(err, zk.ErrNotEmpty) {
			t.Errorf("delete of a held key's node: %v, want ErrNotEmpty", err)
		}
		mustRelease(t, lease)
		nodes.clear(root)
	}
}

// "The Backend looks for the node before it creates another node": it finds the node by its owner.
func TestBackend_CreateAnswerLost(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, link := lookAt(t, addr), testserver.LinkTo(t, addr)
	b := connect(t, link.Addr, zklock.Options{Root: root})
	mustGrant(t, b, "key") // makes the key's node
	if err := b.Release(bounded(t), claim("key", "me")); err != nil {
		t.Fatal(err)
	}

	link.Silence(false, true)
	granted := make(chan lock.Grant, 1)
	go func() { granted <- mustGrant(t, b, "key") }()
	nodes.awaitCount(root+"/key", 1)
	link.Cut(false)
	link.Heal()
	wait(t, "the grant", granted)
	nodes.count(root+"/key", 1)
	if err := b.Release(bounded(t), claim("key", "me")); err != nil {
		t.Errorf("Release: %v", err)
	}
	nodes.count(root+"/key", 0)
}

// "After a lost connection, an unwanted node exists until the next connection": the caller has given up before the
// connection works again, and the key is free for others, although the session lives on.
func TestBackend_CreateAnswerLostAndCallerGone(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, link := lookAt(t, addr), testserver.LinkTo(t, addr)
	locker := newLocker(t, connect(t, link.Addr, zklock.Options{Root: root}), lock.Options{})
	mustRelease(t, acquire(t, locker, "key")) // makes the key's node

	link.Silence(false, true)
	ctx, cancel := context.WithCancel(bounded(t))
	failed := make(chan error, 1)
	go func() {
		_, err := locker.Acquire(ctx, "key")
		failed <- err
	}()
	nodes.awaitCount(root+"/key", 1)
	link.Cut(false)
	cancel()
	if err := wait(t, "the caller's end", failed); !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire: %v, want context.Canceled", err)
	}
	nodes.count(root+"/key", 1)
	link.Heal()
	lease := acquire(t, newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{}), "key")
	nodes.count(root+"/key", 1)
	mustRelease(t, lease)
}

// A creation that could not be sent before the session ended is carried out in the next one, though no caller waits for it
// there.
func TestBackend_CreateSentInNextSession(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, link := lookAt(t, addr), testserver.LinkTo(t, addr)
	b := connect(t, link.Addr, zklock.Options{Root: root, SessionTimeout: briefSession})
	mustGrant(t, b, "of the first session")

	link.Silence(true, true)
	link.Cut(false)
	granted := make(chan lock.Grant, 1)
	go func() { granted <- mustGrant(t, b, "key") }()
	nodes.awaitCount(root+"/of%20the%20first%20session", 0)
	link.Heal()
	wait(t, "the grant", granted)
	nodes.count(root+"/key", 1)
	if err := b.Release(bounded(t), claim("key", "me")); err != nil {
		t.Errorf("Release: %v", err)
	}
	nodes.count(root+"/key", 0)
}

// "Each call ends with its context, although the calls of the library do not; they go on in the background": the server
// falls silent in the middle of a session, at any step of a claim. Once the server goes on, no released node is left,
// although no call was told so.
func TestBackend_CallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, link := lookAt(t, addr), testserver.LinkTo(t, addr)
	b := connect(t, link.Addr, zklock.Options{Root: root})
	fresh, held, renewed, inLine := claim("new", "me"), claim("held", "me"), claim("renewed", "me"), claim("in line", "me")
	ask(t, b, held, false)
	ask(t, b, renewed, false)
	ask(t, b, claim("in line", "other"), false)
	waits := ask(t, b, inLine, true)

	link.Silence(true, true)
	for _, call := range []struct {
		name string
		make func(ctx context.Context) error
	}{
		{"Acquire", func(ctx context.Context) error { _, err := b.Acquire(ctx, fresh); return err }},
		{"Acquire again, behind the first", func(ctx context.Context) error { _, err := b.Acquire(ctx, fresh); return err }},
		{"Release of what may be held", func(ctx context.Context) error { return b.Release(ctx, fresh) }},
		{"Acquire of what is being released", func(ctx context.Context) error { _, err := b.Acquire(ctx, fresh); return err }},
		{"Release", func(ctx context.Context) error { return b.Release(ctx, held) }},
		{"Renew", func(ctx context.Context) error { _, err := b.Renew(ctx, renewed); return err }},
		{"Wait", func(ctx context.Context) error { return b.Wait(ctx, inLine, waits) }},
		{"Release in line", func(ctx context.Context) error { return b.Release(ctx, inLine) }},
	} {
		mustEndWithContext(t, call.name, call.make)
	}
	link.Heal()

	nodes.awaitCount(root+"/held", 0)
	nodes.awaitCount(root+"/in%20line", 1)
	// The creation may not be over. A second release finds the end of the first.
	if err := b.Release(bounded(t), fresh); err != nil && !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want nil or ErrLost", err)
	}
	nodes.count(root+"/new", 0)
	if _, err := b.Renew(bounded(t), renewed); err != nil {
		t.Errorf("Renew of what no holder released: %v", err)
	}
}

// "ErrFence: c.Fence is above the server's counter, and no fence can be raised beyond it."
func TestBackend_Raise(t *testing.T) {
	t.Parallel()
	b := connect(t, testserver.ZooKeeper(t), zklock.Options{Root: newRoot()})
	lease := acquire(t, newLocker(t, b, lock.Options{}), "key")
	before := lease.Fence()
	if err := lease.Raise(bounded(t), before+65_535); err != nil || lease.Fence() <= before+65_535 {
		t.Errorf("Raise: %v, fence %d, want more than %d", err, lease.Fence(), before+65_535)
	}
	before = lease.Fence()
	if err := lease.Raise(bounded(t), before+1<<40); !errors.Is(err, zklock.ErrFence) {
		t.Errorf("Raise by far: %v, want ErrFence", err)
	}
	if lease.Fence() != before || lease.Context().Err() != nil {
		t.Errorf("fence %d, context %v; want %d and a live lease", lease.Fence(), lease.Context().Err(), before)
	}
	mustRelease(t, lease)
}

// "Any text can be a key and an owner": no two keys share a node, no key is refused, and no key leaves the root.
func TestBackend_AnyKey(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes := lookAt(t, addr)
	locker := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})
	keys := []string{
		"sku:42", "a/b", "/a/b", "a/b/", "a//b", "a%2Fb", "/", "//", ".", "..", "...", "../..", "a.b", "./a",
		"zookeeper", " ", "a b", "a\x00b", "\x1f\x7f", "größe", "g\xc3\xb6", "g\xc3", "\xff\xfe", "🙂", "\u200b",
		"\ufff0", "\ue000", "%", "%%", "%2F", "-0000000001", "a-0000000001", "~", "{}", strings.Repeat("/", lock.MaxKey),
	}
	var leases []*lock.Lease
	for _, key := range keys { // each is free though all others are held
		lease, err := locker.TryAcquire(bounded(t), key)
		if err != nil {
			t.Errorf("TryAcquire(%q): %v", key, err)
			continue
		}
		leases = append(leases, lease)
	}
	nodes.count(root, len(keys))
	for _, lease := range leases {
		mustRelease(t, lease)
	}
}

func TestNew_options(t *testing.T) {
	for _, good := range []zklock.Options{{}, {Root: "/shop/locks"}, {SessionTimeout: time.Second}} {
		b, err := zklock.New([]string{"127.0.0.1:1"}, good)
		if err == nil {
			err = b.Close()
		}
		if err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, bad := range []time.Duration{-1, 1000 * time.Hour} { // the library would make 1000 h a negative time
		_, err := zklock.New([]string{"localhost"}, zklock.Options{SessionTimeout: bad})
		if err == nil || !strings.Contains(err.Error(), "SessionTimeout") {
			t.Errorf("%v: got %v, want an error that names SessionTimeout", bad, err)
		}
	}
	if _, err := zklock.New(nil, zklock.Options{}); err == nil {
		t.Error("New takes no servers")
	}
}

// "Each call ends with its context", also where no server answers: one accepts connections and says nothing, one is
// not there at all. Close waits "a few seconds at most".
func TestBackend_NoServer(t *testing.T) {
	t.Parallel()
	mute, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	for _, addr := range []string{mute.Addr().String(), "127.0.0.1:1"} {
		b, err := zklock.New([]string{addr}, zklock.Options{})
		if err != nil {
			t.Fatal(err)
		}
		locker := lock.New(b, lock.Options{TTL: time.Second, MaxWait: 50 * time.Millisecond})
		if _, err := locker.Acquire(t.Context(), "key"); !errors.Is(err, lock.ErrTimeout) {
			t.Errorf("Acquire: %v, want ErrTimeout", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := locker.TryAcquire(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("TryAcquire: %v, want DeadlineExceeded", err)
		}
		cancel()
		began := time.Now()
		if err := locker.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("Close took %v", took)
		}
		if _, err := b.Acquire(t.Context(), lock.Claim{Key: "key", Owner: "me", TTL: time.Second}); !errors.Is(err, lock.ErrClosed) {
			t.Errorf("Acquire after Close: %v, want ErrClosed", err)
		}
		if err := b.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	}
}

// "A node that is not wanted any more is deleted in the background, until the server has confirmed the deletion", even
// after an error that says nothing about the connection.
func TestBackend_ReleaseIsRefused(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes := lookAt(t, addr)
	b := connect(t, addr, zklock.Options{Root: root})
	mustGrant(t, b, "key")
	allow := func(perms int32) {
		t.Helper()
		if _, err := nodes.SetACL(root+"/key", zk.WorldACL(perms), -1); err != nil {
			t.Fatal(err)
		}
	}
	allow(zk.PermAll &^ zk.PermDelete)
	mustEndWithContext(t, "Release", func(ctx context.Context) error {
		return b.Release(ctx, claim("key", "me"))
	})
	allow(zk.PermAll)
	nodes.awaitCount(root+"/key", 0)
}

// The Backend goes on with a release in the background: also when no attempt of the Locker reaches the server, the session
// lives, and the Locker has long given up.
func TestBackend_ReleaseGoesOn(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, link := lookAt(t, addr), testserver.LinkTo(t, addr)
	b := connect(t, link.Addr, zklock.Options{Root: root})
	mustGrant(t, b, "key")
	link.Silence(true, true)
	gone, cancel := context.WithCancel(bounded(t))
	cancel()
	if err := b.Release(gone, claim("key", "me")); !errors.Is(err, context.Canceled) {
		t.Errorf("Release: %v, want context.Canceled", err)
	}
	mustEndWithContext(t, "a second Release", func(ctx context.Context) error { return b.Release(ctx, claim("key", "me")) })
	mustEndWithContext(t, "Renew behind it", func(ctx context.Context) error { _, err := b.Renew(ctx, claim("key", "me")); return err })
	link.Cut(false)
	nodes.count(root+"/key", 1)
	link.Heal()
	nodes.awaitCount(root+"/key", 0)
}

// The answer to a deletion that got lost is no loss of the lease.
func TestBackend_ReleaseAnswerLost(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, link := lookAt(t, addr), testserver.LinkTo(t, addr)
	b := connect(t, link.Addr, zklock.Options{Root: root})
	mustGrant(t, b, "key")
	link.Silence(false, true)
	released := make(chan error, 1)
	go func() { released <- b.Release(bounded(t), claim("key", "me")) }()
	nodes.awaitCount(root+"/key", 0)
	link.Cut(false)
	link.Heal()
	if err := wait(t, "Release", released); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// "First come, first served, in all processes". "A release wakes one waiter": with 100 owners in line, one of them
// looks at the line after each release. A holder that renews wakes no waiter. "A waiter that is not woken checks the
// queue once a TTL."
func TestBackend_NoHerd(t *testing.T) {
	t.Parallel()
	const waiters = 100
	addr, root := testserver.ZooKeeper(t), newRoot()
	holder := connect(t, addr, zklock.Options{Root: root})
	watching := make(chan struct{}, waiters)
	var looks atomic.Int32
	waiting := connect(t, addr, zklock.Options{Root: root, Trace: func(command, _, _ string) {
		switch command {
		case "watch":
			watching <- struct{}{}
		case "children":
			looks.Add(1)
		}
	}})
	owner := func(i int) lock.Claim {
		return lock.Claim{Key: "key", Owner: fmt.Sprint("owner ", i), TTL: 10 * time.Second, Queue: true}
	}
	ask(t, holder, owner(0), false)
	soon := lock.Grant{Held: true, Retry: 10 * time.Millisecond}
	ask(t, waiting, owner(1), true)
	if err := waiting.Wait(bounded(t), owner(1), soon); err != nil {
		t.Errorf("Wait until it is time to ask again: %v", err)
	}
	<-watching
	woken := make(chan int, waiters)
	never := lock.Grant{Held: true, Retry: time.Hour} // no safety net in this test
	for i := 1; i <= waiters; i++ {
		ask(t, waiting, owner(i), true)
		go func() {
			if err := waiting.Wait(bounded(t), owner(i), never); err != nil {
				t.Errorf("Wait by %d: %v", i, err)
			}
			woken <- i
		}()
		wait(t, "watch", watching)
	}
	for range 20 {
		if _, err := holder.Renew(bounded(t), owner(0)); err != nil {
			t.Fatalf("Renew: %v", err)
		}
	}
	looks.Store(0)
	if err := holder.Release(bounded(t), owner(0)); err != nil {
		t.Fatalf("Release: %v", err)
	}
	for i := 1; i <= waiters; i++ {
		if next := wait(t, "wake-up", woken); next != i {
			t.Fatalf("woke %d, want %d", next, i)
		}
		ask(t, waiting, owner(i), false)
		if n := int(looks.Load()); n != i || len(woken) > 0 {
			t.Fatalf("after %d releases the line was read %d times, and %d more are woken", i, n, len(woken))
		}
		if err := waiting.Release(bounded(t), owner(i)); err != nil {
			t.Fatalf("Release by %d: %v", i, err)
		}
	}
}

// "Trace is called after each create, children, watch, set and delete, with the answer or error."
func TestOptions_Trace(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	var mu sync.Mutex
	var all []string
	watching := make(chan struct{})
	b := connect(t, addr, zklock.Options{Root: root, Trace: func(command, path, answer string) {
		mu.Lock()
		defer mu.Unlock()
		if command == "watch" {
			close(watching)
		}
		if command == "children" { // the server has no order
			names := strings.Fields(answer)
			slices.Sort(names)
			answer = strings.Join(names, " ")
		}
		all = append(all, command+" "+strings.TrimPrefix(path, root)+" = "+answer)
	}})
	mustGrant(t, b, "other") // makes the root
	mu.Lock()
	all = nil
	mu.Unlock()
	first, second := claim("key", "a"), claim("key", "b")
	ask(t, b, first, false)
	g := ask(t, b, second, true)
	woken := make(chan error, 1)
	go func() { woken <- b.Wait(bounded(t), second, g) }()
	wait(t, "watch", watching)
	if err := errors.Join(b.Release(bounded(t), first), wait(t, "wake-up", woken)); err != nil {
		t.Fatal(err)
	}
	ask(t, b, second, false)
	mu.Lock()
	defer mu.Unlock()
	want := []string{
		"create /key/a- = zk: node does not exist", "create /key/a- = a-0000000000", "children /key = a-0000000000",
		"create /key/b- = b-0000000001", "children /key = a-0000000000 b-0000000001", "watch /key/a-0000000000 = OK",
		"delete /key/a-0000000000 = OK", "children /key = b-0000000001", "set /key/b-0000000001 = OK",
	}
	if !slices.Equal(all, want) {
		t.Errorf("got %q, want %q", all, want)
	}
}

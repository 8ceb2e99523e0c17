package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
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
	for i := range 50 {
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
		won := 0
		for range 2 {
			if lease := wait(t, "TryAcquire", leases); lease != nil {
				won++
				mustRelease(t, lease)
			}
		}
		if got := nodes.under(root + "/key"); len(got) != 0 {
			t.Fatalf("round %d, won by %d: got nodes %q, want none", i, won, got)
		}
	}
}

// A key's node that is removed at any time, as servers do with empty ones, is made again, and fences go on rising.
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

// "The Backend looks for it before it creates another node": the node is found again by its owner.
func TestBackend_CreateAnswerLost(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, proxy := lookAt(t, addr), newProxy(t, addr)
	locker := newLocker(t, connect(t, proxy.addr, zklock.Options{Root: root}), lock.Options{})
	warmUp(t, locker, "key")

	lost := proxy.loseAnswer(opCreate)
	lease := acquire(t, locker, "key")
	wait(t, "the lost answer", lost)
	if got := nodes.under(root + "/key"); len(got) != 1 {
		t.Errorf("got nodes %q, want one", got)
	}
	mustRelease(t, lease)
	if got := nodes.under(root + "/key"); len(got) != 0 {
		t.Errorf("got nodes %q after the release, want none", got)
	}
}

// The same for a caller who is gone before the connection is back: the key is free for others, though the session lives
// on.
func TestBackend_CreateAnswerLostAndCallerGone(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, proxy := lookAt(t, addr), newProxy(t, addr)
	locker := newLocker(t, connect(t, proxy.addr, zklock.Options{Root: root}), lock.Options{})
	warmUp(t, locker, "key")
	other := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})

	lost := proxy.loseAnswerAndShut(opCreate)
	ctx, cancel := context.WithCancel(bounded(t))
	failed := make(chan error, 1)
	go func() {
		_, err := locker.Acquire(ctx, "key")
		failed <- err
	}()
	wait(t, "the lost answer", lost)
	cancel()
	if err := wait(t, "the caller's end", failed); !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire: %v, want context.Canceled", err)
	}
	if got := nodes.under(root + "/key"); len(got) != 1 {
		t.Errorf("got nodes %q, want the stray one: else this tests nothing", got)
	}
	proxy.open()
	lease := acquire(t, other, "key")
	if got := nodes.under(root + "/key"); len(got) != 1 {
		t.Errorf("got nodes %q, want the other's alone", got)
	}
	mustRelease(t, lease)
}

// A creation that could not be sent before the session ended is carried out in the next one, though no caller waits for it
// there.
func TestBackend_CreateSentInNextSession(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, proxy := lookAt(t, addr), newProxy(t, addr)
	// A busy machine is no reason to give up a request.
	b := connect(t, proxy.addr, zklock.Options{Root: root, SessionTimeout: 30 * time.Minute})
	locker := newLocker(t, b, lock.Options{TTL: 10 * time.Minute})
	warmUp(t, locker, "key")

	proxy.expireAndShut(t)
	leases := make(chan *lock.Lease, 1)
	go func() {
		lease, err := locker.Acquire(bounded(t), "key")
		if err != nil {
			t.Errorf("Acquire: %v", err)
		}
		leases <- lease
	}()
	proxy.open()
	lease := wait(t, "Acquire", leases)
	if lease == nil {
		return
	}
	if got := nodes.under(root + "/key"); len(got) != 1 {
		t.Errorf("got nodes %q, want one", got)
	}
	mustRelease(t, lease)
	if got := nodes.under(root + "/key"); len(got) != 0 {
		t.Errorf("got nodes %q after the release, want none", got)
	}
}

// warmUp makes the session and the key's node: what fails later is the creation of an owner's.
func warmUp(t testing.TB, l *lock.Locker, key string) {
	t.Helper()
	lease := acquire(t, l, key)
	mustRelease(t, lease)
}

// "Each call ends with its context, though the library's do not; what was begun goes on in the background": on a server
// that has fallen silent in the middle of a session, whatever a claim has come to. Once the server goes on, no node is
// left of those that were released, though no call was told so.
func TestBackend_CallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	proxy := newProxy(t, addr)
	b := connect(t, proxy.addr, zklock.Options{Root: root})
	claim := func(key string) lock.Claim {
		return lock.Claim{Key: key, Owner: "me", TTL: 10 * time.Second, Queue: true}
	}
	other := claim("in line")
	other.Owner = "somebody else"
	for _, c := range []lock.Claim{claim("held"), claim("renewed"), other} {
		ask(t, b, c, false)
	}
	inLine := ask(t, b, claim("in line"), true)

	proxy.freeze()
	for _, call := range []struct {
		name string
		make func(ctx context.Context) error
	}{
		{"Acquire", func(ctx context.Context) error { _, err := b.Acquire(ctx, claim("new")); return err }},
		{"Acquire again, behind the first", func(ctx context.Context) error { _, err := b.Acquire(ctx, claim("new")); return err }},
		{"Release of what may be held", func(ctx context.Context) error { return b.Release(ctx, claim("new")) }},
		{"Acquire of what is being released", func(ctx context.Context) error { _, err := b.Acquire(ctx, claim("new")); return err }},
		{"Release", func(ctx context.Context) error { return b.Release(ctx, claim("held")) }},
		{"Renew", func(ctx context.Context) error { _, err := b.Renew(ctx, claim("renewed")); return err }},
		{"Wait", func(ctx context.Context) error { return b.Wait(ctx, claim("in line"), inLine) }},
		{"Release in line", func(ctx context.Context) error { return b.Release(ctx, claim("in line")) }},
	} {
		mustEndWithContext(t, call.name, call.make)
	}
	proxy.thaw()

	nodes := lookAt(t, addr)
	nodes.awaitCount(root+"/held", 0)
	nodes.awaitCount(root+"/in%20line", 1)
	// The creation may not be over. A second release finds the end of the first.
	if err := b.Release(bounded(t), claim("new")); err != nil && !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want nil or ErrLost", err)
	}
	if got := nodes.under(root + "/new"); len(got) != 0 {
		t.Errorf("got nodes %q, want none", got)
	}
	if _, err := b.Renew(bounded(t), claim("renewed")); err != nil {
		t.Errorf("Renew of what no holder released: %v", err)
	}
}

// "A call whose context has ended before begins nothing, but for Release", of which TestBackend_ReleaseGoesOn is the
// test.
func TestBackend_ContextEndedBefore(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t, testserver.ZooKeeper(t))
	b := connect(t, proxy.addr, zklock.Options{Root: newRoot()})
	held := lock.Claim{Key: "held", Owner: "me", TTL: time.Second}
	ask(t, b, held, false)
	before := proxy.count(opCreate)
	ended, cancel := context.WithCancel(bounded(t))
	cancel()
	c := lock.Claim{Key: "key", Owner: "me", TTL: time.Second}
	for range 20 { // a select with both ready takes either
		if _, err := b.Acquire(ended, c); !errors.Is(err, context.Canceled) {
			t.Fatalf("Acquire: %v, want context.Canceled", err)
		}
	}
	if err := b.Release(bounded(t), c); !errors.Is(err, lock.ErrLost) { // behind anything that was begun
		t.Errorf("Release: %v, want ErrLost", err)
	}
	if got := proxy.count(opCreate) - before; got != 0 {
		t.Errorf("%d creations were sent, want none", got)
	}
}

// mustEndWithContext calls with a context that ends soon. Late is far behind that for a machine that is busy, and far
// before anything that the library waits for.
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

// "It can be raised no further than the server has counted: ErrFence".
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

// "Sequence numbers used up": the line empties, and its node is made anew.
func TestBackend_SequenceUsedUp(t *testing.T) {
	t.Parallel()
	b := connect(t, testserver.ZooKeeper(t), zklock.Options{Root: newRoot()})
	b.SetLastSequence(2)
	locker := newLocker(t, b, lock.Options{})
	var last int64
	refused := 0
	for range 9 {
		lease, err := locker.Acquire(bounded(t), "key")
		if errors.Is(err, zklock.ErrSequence) {
			refused++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if lease.Fence() <= last {
			t.Errorf("fence %d after %d", lease.Fence(), last)
		}
		last = lease.Fence()
		mustRelease(t, lease)
	}
	if refused != 2 {
		t.Errorf("refused %d times, want 2: the 4th and the 8th", refused)
	}
}

// "Any text is a key and an owner": no two keys meet, none is refused, and none gets out of the root.
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
	if got := nodes.under(root); len(got) != len(keys) {
		t.Errorf("got %d nodes, want %d: %q", len(got), len(keys), got)
	}
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

// "Every wait has a deadline", also where no server answers: one accepts connections and says nothing, one is not there
// at all.
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

// "A node that is not wanted any more is deleted in the background, until the server has confirmed it", also after an
// error that says nothing about the connection.
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
		return b.Release(ctx, lock.Claim{Key: "key", Owner: "me", TTL: time.Second})
	})
	allow(zk.PermAll)
	nodes.awaitCount(root+"/key", 0)
}

// "Release goes on by itself": also when no attempt of the Locker reaches the server, the session lives, and the Locker
// has long given up.
func TestBackend_ReleaseGoesOn(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, proxy := lookAt(t, addr), newProxy(t, addr)
	b := connect(t, proxy.addr, zklock.Options{Root: root})
	c := lock.Claim{Key: "key", Owner: "me", TTL: time.Second}
	ask(t, b, c, false)
	proxy.shut()
	gone, cancel := context.WithCancel(bounded(t))
	cancel()
	if err := b.Release(gone, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Release: %v, want context.Canceled", err)
	}
	mustEndWithContext(t, "a second Release", func(ctx context.Context) error { return b.Release(ctx, c) })
	mustEndWithContext(t, "Renew behind it", func(ctx context.Context) error { _, err := b.Renew(ctx, c); return err })
	nodes.awaitCount(root+"/key", 1)
	proxy.open()
	nodes.awaitCount(root+"/key", 0)
}

// The answer to a deletion that got lost is no loss of the lease.
func TestBackend_ReleaseAnswerLost(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t, testserver.ZooKeeper(t))
	locker := newLocker(t, connect(t, proxy.addr, zklock.Options{Root: newRoot()}), lock.Options{})
	lease := acquire(t, locker, "key")
	lost := proxy.loseAnswer(opDelete)
	mustRelease(t, lease)
	wait(t, "the lost answer", lost)
}

// "A release wakes one": with 100 owners in line, each release is one event from the server, after which one owner
// looks at the line. A holder that renews wakes no waiter.
func TestBackend_NoHerd(t *testing.T) {
	t.Parallel()
	const waiters = 100
	addr, root := testserver.ZooKeeper(t), newRoot()
	proxy := newProxy(t, addr)
	waiting := connect(t, proxy.addr, zklock.Options{Root: root})
	holder := connect(t, addr, zklock.Options{Root: root})
	claim := func(i int) lock.Claim {
		return lock.Claim{Key: "key", Owner: fmt.Sprint("owner ", i), TTL: 10 * time.Second, Queue: true}
	}
	ask(t, holder, claim(0), false)
	woken := make(chan int, waiters)
	never := lock.Grant{Held: true, Retry: time.Hour} // no safety net in this test
	for i := 1; i <= waiters; i++ {
		ask(t, waiting, claim(i), true)
		before := proxy.count(opChildren)
		go func() {
			if err := waiting.Wait(bounded(t), claim(i), never); err != nil {
				t.Errorf("Wait by %d: %v", i, err)
			}
			woken <- i
		}()
		wait(t, "watch", proxy.counted(opChildren, before+1))
	}
	for range 20 {
		if _, err := holder.Renew(bounded(t), claim(0)); err != nil {
			t.Fatalf("Renew: %v", err)
		}
	}
	lines := proxy.count(opChildren)
	if err := holder.Release(bounded(t), claim(0)); err != nil {
		t.Fatalf("Release: %v", err)
	}
	for i := 1; i <= waiters; i++ {
		if next := wait(t, "wake-up", woken); next != i {
			t.Fatalf("woke %d, want %d", next, i)
		}
		ask(t, waiting, claim(i), false)
		if got := proxy.eventCount(); got != i {
			t.Fatalf("got %d events after %d releases", got, i)
		}
		if got := proxy.count(opChildren) - lines; got != i {
			t.Fatalf("the line was read %d times after %d releases", got, i)
		}
		if err := waiting.Release(bounded(t), claim(i)); err != nil {
			t.Fatalf("Release by %d: %v", i, err)
		}
	}
}

// "Trace is called after each create, children, watch, set and delete, with its answer or error."
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
	first := lock.Claim{Key: "key", Owner: "a", TTL: time.Second, Queue: true}
	second := lock.Claim{Key: "key", Owner: "b", TTL: time.Second, Queue: true}
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

package zklock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/zklock"
	"example.com/shop/internal/testserver"
)

// briefSession is the session timeout of tests in which a session expires.
const briefSession = 4 * time.Second

// A waiter whose session ends stands in line again in the next one.
func TestBackend_SessionExpiresInLine(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, link := lookAt(t, addr), testserver.LinkTo(t, addr)
	holder := connect(t, addr, zklock.Options{Root: root})
	b := connect(t, link.Addr, zklock.Options{Root: root, SessionTimeout: briefSession})
	mustGrant(t, holder, "key")
	waits := ask(t, b, claim("key", "waiter"), true)
	link.Silence(true, true)
	nodes.awaitCount(root+"/key", 1)
	link.Heal()
	testserver.Until(t, "the next session has begun", patience, func() bool {
		g, err := b.Acquire(bounded(t), claim("key", "waiter"))
		return err == nil && g.Held
	})
	nodes.count(root+"/key", 2)
	woken := make(chan error, 1)
	waits.Retry = patience
	go func() { woken <- b.Wait(bounded(t), claim("key", "waiter"), waits) }()
	if err := errors.Join(holder.Release(bounded(t), claim("key", "me")), wait(t, "wake-up", woken)); err != nil {
		t.Fatal(err)
	}
	ask(t, b, claim("key", "waiter"), false)
}

// "ErrTTL means that the Locker's TTL is more than a third of the timeout that the server granted": what counts is what
// it granted, not what was asked for.
func TestBackend_TTLTooLong(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	b := connect(t, addr, zklock.Options{Root: root, SessionTimeout: 30 * time.Minute})
	_, err := newLocker(t, b, lock.Options{TTL: 10*time.Minute + time.Millisecond}).Acquire(bounded(t), "key")
	if !errors.Is(err, zklock.ErrTTL) || !errors.Is(err, lock.ErrNotAcquired) {
		t.Errorf("Acquire: %v, want ErrTTL and ErrNotAcquired", err)
	}
	for _, says := range []string{"10m0.001s", "30m0s"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("error %q does not say %s", err, says)
		}
	}
	day := connect(t, addr, zklock.Options{Root: root, SessionTimeout: 24 * time.Hour}) // granted: one hour
	c := lock.Claim{Key: "key", Owner: "me", TTL: 21 * time.Minute}
	if _, err := day.Acquire(bounded(t), c); !errors.Is(err, zklock.ErrTTL) {
		t.Errorf("Acquire: %v, want ErrTTL", err)
	}
	c.TTL = 20 * time.Minute
	ask(t, day, c, false)
	c.TTL = 21 * time.Minute
	if _, err := day.Renew(bounded(t), c); !errors.Is(err, zklock.ErrTTL) {
		t.Errorf("Renew: %v, want ErrTTL", err)
	}
}

// "The session ends later, with all its leases": no lease is held in the next session.
func TestBackend_LostWithSession(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, link := lookAt(t, addr), testserver.LinkTo(t, addr)
	b := connect(t, link.Addr, zklock.Options{Root: root, SessionTimeout: briefSession})
	mustGrant(t, b, "first")
	mustGrant(t, b, "second")
	link.Silence(true, true)
	nodes.awaitCount(root+"/first", 0)
	link.Heal()
	if err := renew(t, b, claim("first", "me")); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Renew after the session's end: %v, want ErrLost", err)
	}
	if err := b.Release(bounded(t), claim("second", "me")); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want ErrLost", err)
	}
	mustGrant(t, b, "first")
}

// "A lost connection does not end a lease": the lease is renewed over another connection, however often.
func TestBackend_NotLostWithConnection(t *testing.T) {
	t.Parallel()
	link := testserver.LinkTo(t, testserver.ZooKeeper(t))
	b := connect(t, link.Addr, zklock.Options{Root: newRoot()})
	mustGrant(t, b, "key")
	for range 3 {
		link.Cut(false)
		if err := renew(t, b, claim("key", "me")); err != nil {
			t.Fatalf("Renew: %v", err)
		}
	}
	if err := b.Release(bounded(t), claim("key", "me")); err != nil {
		t.Errorf("Release: %v", err)
	}
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
	root := newRoot()
	holder := connectAll(t, addrs, zklock.Options{Root: root})
	waiter := connectAll(t, addrs, zklock.Options{Root: root})
	first := lock.Claim{Key: "key", Owner: "first", TTL: 10 * time.Second}
	next := lock.Claim{Key: "key", Owner: "next", TTL: 10 * time.Second, Queue: true}
	held := ask(t, holder, first, false)
	g := ask(t, waiter, next, true)
	leads := func(s *testserver.Server) bool {
		answer, err := testserver.ZooKeeperStatus(t.Context(), s.Addr())
		return err == nil && strings.Contains(answer, "\nMode: leader")
	}
	leader := -1
	testserver.Until(t, "one of the servers leads", time.Minute, func() bool {
		leader = slices.IndexFunc(servers, leads)
		return leader >= 0
	})
	testserver.Must(t, servers[leader].Do(t.Context(), testserver.Kill))
	if err := renew(t, holder, first); err != nil {
		t.Fatalf("Renew: %v", err)
	}
	if err := holder.Release(bounded(t), first); err != nil {
		t.Errorf("Release: %v", err)
	}
	for ctx := bounded(t); g.Held && ctx.Err() == nil; {
		if err := waiter.Wait(ctx, next, g); err != nil {
			t.Fatalf("Wait: %v", err)
		}
		var err error
		if g, err = waiter.Acquire(ctx, next); err != nil {
			t.Fatalf("Acquire: %v", err)
		}
	}
	if g.Fence <= held.Fence {
		t.Errorf("fence %d after %d", g.Fence, held.Fence)
	}
}

// "Then only clients with the same credentials can see, take and delete the nodes that the Backend creates." "The
// credentials are sent again on each new connection", and in the next session.
func TestBackend_Auth(t *testing.T) {
	t.Parallel()
	addr := testserver.ZooKeeper(t)
	link := testserver.LinkTo(t, addr)
	root := fmt.Sprintf("/test-%016x", rand.Uint64()) // with no node above it, which would also be private
	ours := zklock.Options{Root: root, AuthScheme: "digest", AuthCredentials: "shop:secret"}
	friend := connect(t, addr, ours)
	ours.SessionTimeout = briefSession
	holder := connect(t, link.Addr, ours)
	mustGrant(t, holder, "key")
	link.Cut(false)
	if err := renew(t, holder, claim("key", "me")); err != nil {
		t.Fatalf("Renew: %v", err)
	}
	waits := ask(t, friend, claim("key", "friend"), true)
	waits.Retry = patience
	for _, credentials := range []string{"", "shop:guess"} {
		theirs := zklock.Options{Root: root, AuthCredentials: credentials}
		if credentials != "" {
			theirs.AuthScheme = "digest"
		}
		stranger := connect(t, addr, theirs)
		if g, err := stranger.Acquire(bounded(t), claim("key", "stranger")); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("credentials %q: Acquire: %+v, %v; want ErrNoAuth", credentials, g, err)
		}
		if err := stranger.Evict(bounded(t), "key", "me"); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("credentials %q: Evict: %v, want ErrNoAuth", credentials, err)
		}
	}
	if err := lookAt(t, addr).Delete(root+"/key/me-0000000000", -1); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("delete: %v, want ErrNoAuth", err)
	}

	link.Silence(true, true)
	if err := friend.Wait(bounded(t), claim("key", "friend"), waits); err != nil { // until the holder's session has expired
		t.Fatalf("Wait: %v", err)
	}
	link.Heal()
	if err := renew(t, holder, claim("key", "me")); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Renew after the session's end: %v, want ErrLost", err)
	}
	ask(t, friend, claim("key", "friend"), false)
	if err := friend.Release(bounded(t), claim("key", "friend")); err != nil {
		t.Errorf("Release: %v", err)
	}
	mustGrant(t, holder, "key")
	unknown := connect(t, addr, zklock.Options{Root: root, AuthScheme: "unknown"})
	if _, err := unknown.Acquire(bounded(t), claim("key", "stranger")); !errors.Is(err, zk.ErrAuthFailed) || !strings.Contains(err.Error(), `"unknown"`) {
		t.Errorf("Acquire by an unknown scheme: %v, want ErrAuthFailed", err)
	}
}

package zklock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
)

// "Each call ends with its context, though the library's do not; what was begun
// goes on in the background": on a server that has fallen silent in the middle of
// a session, whatever a claim has come to. Once the server goes on, no node is
// left of those that were released, though no call was told so.
func TestBackend_CallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t)
	root := newRoot()
	b := connect(t, server.Addr(), zklock.Options{Root: root})
	claim := func(key string) lock.Claim {
		return lock.Claim{Key: key, Owner: "me", TTL: 10 * time.Second, Queue: true}
	}
	other := claim("in line")
	other.Owner = "somebody else"
	for _, c := range []lock.Claim{claim("held"), claim("renewed"), other} {
		if g, err := b.Acquire(bounded(t), c); err != nil || g.Held {
			t.Fatalf("Acquire %q: %+v, %v", c.Key, g, err)
		}
	}
	inLine, err := b.Acquire(bounded(t), claim("in line"))
	if err != nil || !inLine.Held {
		t.Fatalf("Acquire in line: %+v, %v", inLine, err)
	}

	server.Pause(t)
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
	server.Unpause(t)

	nodes := lookAt(t, server.Addr())
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
		t.Errorf("Renew of what nobody released: %v", err)
	}
}

// The same where no session has begun, so that there is nothing to send.
func TestBackend_CallsEndWithoutSession(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t)
	server.Pause(t)
	root := newRoot()
	b := connect(t, server.Addr(), zklock.Options{Root: root})
	c := lock.Claim{Key: "key", Owner: "me", TTL: time.Second}
	mustEndWithContext(t, "Acquire", func(ctx context.Context) error { _, err := b.Acquire(ctx, c); return err })
	server.Unpause(t)
	if err := b.Release(bounded(t), c); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want ErrLost", err)
	}
	if got := lookAt(t, server.Addr()).under(root + "/key"); len(got) != 0 {
		t.Errorf("got nodes %q, want none", got)
	}
}

// "A call whose context has ended before begins nothing, but for Release", of
// which TestBackend_ReleaseGoesOn is the test.
func TestBackend_ContextEndedBefore(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t, testserver.ZooKeeper(t))
	b := connect(t, proxy.addr, zklock.Options{Root: newRoot()})
	held := lock.Claim{Key: "held", Owner: "me", TTL: time.Second}
	if g, err := b.Acquire(bounded(t), held); err != nil || g.Held {
		t.Fatalf("Acquire: %+v, %v", g, err)
	}
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

// mustEndWithContext calls with a context that ends soon. Late is far behind that
// for a machine that is busy, and far before anything that the library waits for.
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

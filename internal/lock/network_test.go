package lock_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/testserver"
)

// "A lost message [...] delays a waiter by about a tenth of the TTL; a waiter never hangs." If the subscription's
// connection has died in silence, the delay is shorter: the connection is pinged and opened again, and the waiters are
// woken.
func TestRedis_SilentSubscription(t *testing.T) {
	t.Parallel()
	server := startMiniredis(t)
	link := testserver.LinkTo(t, server.Addr())
	o := lock.Options{TTL: time.Hour, MaxWait: 2 * time.Hour}
	holder := newLocker(t, lock.NewRedis(connect(t, server.Addr())), o)
	const patience = 300 * time.Millisecond
	silent := lock.NewRedis(closing(t, redis.NewClient(&redis.Options{
		Addr: link.Addr, ContextTimeoutEnabled: true, ReadTimeout: patience,
	})))
	silent.SetPatience(patience)
	tap := locktest.NewTap(silent)
	waiter := newLocker(t, tap, o)
	lease := mustAcquire(t, holder, "k")
	served := make(chan error, 1)
	go func() { served <- waiter.Do(t.Context(), "k", nothing) }()
	await(t, "waiter", tap.Seen(locktest.Wait, 1))
	link.Cut(true)
	await(t, "waiter that asks again", tap.Seen(locktest.Wait, 2))
	mustPass(t, lease, served)
}

// mustPass releases a lease, whose key the waiter has to get then.
func mustPass(t *testing.T, lease *lock.Lease, served <-chan error) {
	t.Helper()
	mustRelease(t, lease)
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the waiter is not woken by the release")
	}
}

// "A driver repeats this request, because its answer was lost": the answer to a release is lost with its connection, and the lease
// was not lost for that.
func TestRedis_ReleaseAnswerLost(t *testing.T) {
	server := startMiniredis(t)
	link := testserver.LinkTo(t, server.Addr())
	locker := newLocker(t, lock.NewRedis(connect(t, link.Addr)), lock.Options{})
	other := newLocker(t, lock.NewRedis(connect(t, server.Addr())), lock.Options{})
	mustRelease(t, mustAcquire(t, locker, "key")) // now the server knows the scripts
	lease := mustAcquire(t, locker, "key")
	link.Silence(false, true)
	released := make(chan error, 1)
	go func() { released <- lease.Release() }()
	testserver.Until(t, "the key is released", time.Minute, func() bool {
		h, err := other.Holder(t.Context(), "key")
		return err == nil && h.Owner == ""
	})
	link.Cut(false)
	link.Heal()
	if err := <-released; err != nil {
		t.Errorf("Release: %v, want nil", err)
	}
}

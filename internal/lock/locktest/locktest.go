// Package locktest checks that a lock.Backend keeps the rules of package lock.
//
// A backend's test is one call, with a function that starts its store:
//
//	func TestRedis(t *testing.T) {
//		locktest.Run(t, func(t *testing.T) locktest.Harness {
//			addr := startRedis(t)
//			return locktest.Harness{
//				Connect: func(t testing.TB) lock.Backend { return lock.NewRedis(connect(t, addr)) },
//				Expires: true, Notifies: true, Fences: true,
//				Forget: func(t testing.TB) { flush(t, addr) },
//			}
//		})
//	}
//
// A rule about what is not set is skipped. Each call of Connect stands for another process. Rules of the store alone
// call its Backend; the others put a Locker on each and let them contend. Races are made with signals, by a Tap around
// the backend. What a Locker promises whatever its store is, package locksim checks.
package locktest

import (
	"testing"
	"time"

	"example.com/shop/internal/lock"
)

// Harness is one started store, and what it can do.
type Harness struct {
	// Connect returns a new Backend over the store, as another process would have it. The suite closes it; a client is
	// the harness's to close, by t.Cleanup.
	Connect func(t testing.TB) lock.Backend

	// Expires: a lease whose holder the store hears no more of ends after its TTL.
	Expires bool

	// Notifies: a waiter is notified of a release, one process at most, in the order in which they came.
	Notifies bool

	// Fences: the backend mints fencing tokens. With Expires, they can also be raised above any number seen elsewhere.
	Fences bool

	// Cut takes a Backend that Connect returned off the network, where a lease lasts for as long as the store hears of
	// its process, and not for its TTL alone. It then ends some time after its TTL. Nil: the Tap's Cut is enough.
	Cut func(b lock.Backend)

	// Forget makes the store lose its memory, as FLUSHALL does; nil if it cannot.
	Forget func(t testing.TB)
}

// rules is the suite.
var rules = []struct {
	name  string
	check func(t *testing.T, h Harness)
}{
	{"Exclusion", exclusion},
	{"TryAcquire", tryAcquire},
	{"Close", closing},
	{"CrashedHolder", crashedHolder},
	{"StoreForgets", storeForgets},
	{"FenceRaised", fenceRaised},
	{"Holder", holder},

	{"Renewal", renewal},
	{"RenewalNeverRevives", renewalNeverRevives},
	{"OwnerAsksAgain", ownerAsksAgain},
	{"OwnerComparedWhole", ownerComparedWhole},

	{"WokenByRelease", wokenByRelease},
	{"GivingUpLeavesQueue", givingUpLeavesQueue},
}

// Run checks every rule against stores that start returns. A rule that the store has no means for is skipped by the
// name of the capability.
func Run(t *testing.T, start func(t *testing.T) Harness) {
	h := start(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.check(t, h) })
	}
}

// need skips a test that this store has no means for.
func need(t *testing.T, has bool, capability string) {
	t.Helper()
	if !has {
		t.Skipf("capability %s: this store does not have it", capability)
	}
}

const (
	patience = 20 * time.Second       // bounds every wait; nothing takes this long unless it hangs
	long     = 10 * patience          // a TTL that no test waits for: what goes on sooner was not caused by its end
	short    = 600 * time.Millisecond // a TTL whose end tests wait for
)

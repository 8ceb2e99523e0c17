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
// If a capability is not set, its rules are skipped. Each call of Connect stands for another process. The rules for the
// store call its Backend; the other rules put a Locker on each Backend and let them contend. A Tap around the backend
// makes races by signals. Package locksim checks the promises that a Locker keeps with any store.
package locktest

import (
	"testing"
	"time"

	"example.com/shop/internal/lock"
)

// Harness is one started store, with its capabilities.
type Harness struct {
	// Connect returns a new Backend, as in another process. The suite closes the Backend; the harness closes the client.
	Connect func(t testing.TB) lock.Backend

	// Expires: if the store hears no more of a lease's holder, the lease ends after its TTL.
	Expires bool

	// Notifies: a release notifies the waiter that came first, and at most one process.
	Notifies bool

	// Fences: the backend mints fencing tokens. With Expires, tokens can also be raised above any number seen elsewhere.
	Fences bool

	// Cut takes a Backend that Connect returned off the network. It is for stores in which a lease lasts for as long as the
	// store hears of the process: the lease then ends some time after its TTL. Nil: the Tap's Cut is enough.
	Cut func(b lock.Backend)

	// Forget makes the store lose its data, as FLUSHALL does; nil if it cannot.
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

// Run checks every rule against the store that start returns. If the store lacks a capability, its rules are skipped,
// and the test names the capability.
func Run(t *testing.T, start func(t *testing.T) Harness) {
	h := start(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.check(t, h) })
	}
}

// need skips a test whose capability this store lacks.
func need(t *testing.T, has bool, capability string) {
	t.Helper()
	if !has {
		t.Skipf("capability %s: this store does not have it", capability)
	}
}

const (
	patience = 20 * time.Second       // bounds every wait; only a call that hangs takes this long
	long     = 10 * patience          // a TTL that no test waits for: its end causes no earlier event
	short    = 600 * time.Millisecond // a TTL whose end tests wait for
)

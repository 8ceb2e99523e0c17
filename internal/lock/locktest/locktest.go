// Package locktest checks that a lock.Backend keeps the rules of package lock.
//
// A backend's test is one call, with a function that starts its store:
//
//	func TestRedis(t *testing.T) {
//		locktest.Run(t, func(t *testing.T) locktest.Harness {
//			addr := startRedis(t)
//			return locktest.Harness{
//				Connect: func(t testing.TB) lock.Backend { return lock.NewRedis(connect(t, addr)) },
//				Fences:  true,
//			}
//		})
//	}
//
// Each call of Connect stands for another process: the suite puts one Locker on each and lets them contend. Races are made
// with signals: a Tap around the backend holds requests or answers back until the test lets them go. Where a test waits for
// time to pass, it waits for what the time brings about (a renewal seen, a key free), never for a guess of how long that
// takes.
package locktest

import (
	"testing"
	"time"

	"example.com/shop/internal/lock"
)

// Harness is one started store, and what it can do.
type Harness struct {
	// Connect returns a new Backend over the store, as another process would have it. The suite closes it; a client is the
	// harness's to close, by t.Cleanup.
	Connect func(t testing.TB) lock.Backend

	// Expires: a lease whose holder the store hears no more of ends after its TTL.
	Expires bool

	// Notifies: a waiter is notified of a release, and one process at most.
	Notifies bool

	// FirstInFirstOut: waiters of several processes are served in the order in which they came.
	FirstInFirstOut bool

	// Fences: the backend mints fencing tokens.
	Fences bool

	// Raises: a fence can be lifted above a number seen elsewhere.
	Raises bool

	// Cut takes a Backend that Connect returned off the network, where a lease lasts for as long as the store hears of its
	// process, and not for its TTL alone. It then ends some time after its TTL. Nil: the Tap's Cut is enough.
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

	{"Deadline", deadline},
	{"CrashedHolder", crashedHolder},
	{"Renewal", renewal},
	{"RenewalNeverRevives", renewalNeverRevives},

	{"OwnerAsksAgain", ownerAsksAgain},
	{"OwnerComparedWhole", ownerComparedWhole},
	{"LostReply", lostReply},
	{"ReleaseAfterCancel", releaseAfterCancel},
	{"ReleaseReportsLoss", releaseReportsLoss},

	{"CancelledInFlight", cancelledInFlight},
	{"CancelledInStoreQueue", cancelledInStoreQueue},
	{"CancelledInProcessQueue", cancelledInProcessQueue},
	{"GivingUpLeavesQueue", givingUpLeavesQueue},

	{"WokenByRelease", wokenByRelease},
	{"LostNotification", lostNotification},
	{"HandoffSkipsStore", handoffSkipsStore},
	{"StoreQueue", storeQueue},

	{"FenceSurvivesForgetting", fenceSurvivesForgetting},
	{"FenceRaised", fenceRaised},

	{"Reentrant", reentrant},
	{"ReentrantEnds", reentrantEnds},
	{"SeveralKeys", severalKeys},
	{"SeveralKeysOneLost", severalKeysOneLost},
}

// Run checks every rule against stores that start returns. A rule that the store has no means for is skipped by the name of
// the capability.
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

package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/shop/internal/lock"
)

// Harness is one started store, and what it can do.
type Harness struct {
	// Connect returns a new Backend over the store, as another process would
	// have it. The suite closes it; a client is the harness's to close, by
	// t.Cleanup.
	Connect func(t testing.TB) lock.Backend

	// Expires: a lease whose holder is heard of no more ends after its TTL.
	Expires bool

	// Notifies: who waits is told of a release, and one process at most.
	Notifies bool

	// FirstInFirstOut: waiters of several processes are served in the order in
	// which they came.
	FirstInFirstOut bool

	// Fences: the backend mints fencing tokens.
	Fences bool

	// Raises: a fence can be lifted above a number seen elsewhere.
	Raises bool

	// Cut takes a Backend that Connect returned off the network, where a lease
	// lasts for as long as the store hears of its process, and not for its TTL
	// alone. It then ends some time after its TTL. Nil: the Tap's Cut is enough.
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
	{"Deadline", deadline},
	{"Renewal", renewal},
	{"MaxHold", maxHold},
	{"RenewalNeverRevives", renewalNeverRevives},
	{"OwnerAsksAgain", ownerAsksAgain},
	{"OwnerComparedWhole", ownerComparedWhole},
	{"LostReply", lostReply},
	{"CancelledInFlight", cancelledInFlight},
	{"CancelledInSilence", cancelledInSilence},
	{"CancelledInStoreLine", cancelledInStoreLine},
	{"CancelledInProcessLine", cancelledInProcessLine},
	{"QuitterLeavesLine", quitterLeavesLine},
	{"ReleaseAfterCancel", releaseAfterCancel},
	{"ReleaseTellsLoss", releaseTellsLoss},
	{"WokenByRelease", wokenByRelease},
	{"OneWokenPerRelease", oneWokenPerRelease},
	{"UnheardCall", unheardCall},
	{"CrashedHolder", crashedHolder},
	{"ProcessLine", processLine},
	{"HandoffSkipsStore", handoffSkipsStore},
	{"HandoffIsBounded", handoffIsBounded},
	{"StoreLine", storeLine},
	{"FenceRises", fenceRises},
	{"FenceSurvivesForgetting", fenceSurvivesForgetting},
	{"FenceRaised", fenceRaised},
	{"Reentrant", reentrant},
	{"ReentrantEnds", reentrantEnds},
	{"SeveralKeys", severalKeys},
	{"SeveralKeysInAnyOrder", severalKeysInAnyOrder},
	{"SeveralKeysOneLost", severalKeysOneLost},
	{"TryAcquire", tryAcquire},
	{"Close", closing},
}

// Run checks every rule against stores that start returns. A rule that the store
// has no means for is skipped by the name of the capability.
func Run(t *testing.T, start func(t *testing.T) Harness) {
	h := start(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.check(t, h) })
	}
}

// patience bounds every wait of the suite. Nothing takes this long unless it
// hangs.
const patience = 20 * time.Second

// long is a TTL that no test waits for: what goes on sooner was not caused by
// its end.
const long = 10 * patience

// short is a TTL whose end tests wait for.
const short = 600 * time.Millisecond

// process is a Locker with a Tap between it and the store.
type process struct {
	*lock.Locker
	tap *Tap
}

// need skips a test that this store has no means for.
func need(t *testing.T, has bool, capability string) {
	t.Helper()
	if !has {
		t.Skipf("capability %s: this store does not have it", capability)
	}
}

// backend returns one that is closed at the end of the test.
func (h Harness) backend(t *testing.T) lock.Backend {
	t.Helper()
	b := h.Connect(t)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close backend: %v", err)
		}
	})
	return b
}

// processes returns n Lockers on connections of their own.
func (h Harness) processes(t *testing.T, n int, o lock.Options) []process {
	t.Helper()
	ps := make([]process, n)
	for i := range ps {
		tap := NewTap(h.backend(t))
		ps[i] = process{Locker: lock.New(tap, o), tap: tap}
		t.Cleanup(func() {
			tap.Open()
			if err := ps[i].Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	return ps
}

// context returns one that ends with the suite's patience.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// key returns one that no other test uses.
func key(t *testing.T) string {
	return fmt.Sprintf("%s/%08x", t.Name(), rand.Uint32())
}

// acquire fails the test if the lease cannot be had.
func acquire(t *testing.T, l *lock.Locker, key string) *lock.Lease {
	t.Helper()
	lease, err := insist(bounded(t), l, key)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return lease
}

// insist asks until there is an answer: a machine that stands still for a second
// costs a request all of its time.
func insist(ctx context.Context, l *lock.Locker, key string) (*lock.Lease, error) {
	for {
		lease, err := l.Acquire(ctx, key)
		if !errors.Is(err, lock.ErrNoAnswer) || ctx.Err() != nil {
			return lease, err
		}
	}
}

// giveBack releases a lease with a short TTL, which such a machine may lose.
func giveBack(t *testing.T, lease *lock.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil && !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v", err)
	}
}

// release fails the test if the lease was lost.
func release(t *testing.T, lease *lock.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

// wait fails the test if the signal does not come.
func wait(t *testing.T, what string, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(patience):
		t.Fatalf("%s: nothing happened for %v", what, patience)
	}
}

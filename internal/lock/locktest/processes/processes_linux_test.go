// Package processes runs Lockers in real processes that are killed and stopped, over one real Redis.
//
//	go test ./internal/lock/locktest/processes -v
//
// Its test starts itself again as children, in each of which some goroutines take turns on a few keys through one
// Locker. Meanwhile one child is killed as it holds a key, and replaced; one is stopped as it holds a key, until
// another has had that key, and goes on; and the store loses its memory. The children report of each lease when it
// begins and how long they trusted it, and package history judges the reports:
//
//   - Of all leases on a key, one at a time was trusted: from when Acquire returned to the last instant at which
//     Remaining, asked afterwards, said that it still was. That is what holders do before they commit.
//   - Fences rise in the order of the grants, also over the loss of memory, which excuses nothing but that a lease of
//     before it is trusted beside one of after.
//
// When all have ended nothing is left in the store. Another test runs children that do not share a lock, which is
// noticed.
//
// All read CLOCK_MONOTONIC, which is one for all processes of a machine: the tests are for Linux. There a child is also
// ended by the kernel when its parent ends, however that does.
package processes

import (
	"fmt"
	"log"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest/history"
	"example.com/shop/internal/testserver"
)

func TestMain(m *testing.M) {
	if args := os.Getenv(childArgs); args != "" {
		if err := beChild(args); err != nil {
			log.Fatal(err) //nolint:forbidigo // this process is a child, not the test
		}
		return
	}
	goleak.VerifyTestMain(testserver.Wrap(m))
}

// servers are started for one test alone, which flushes it.
var servers = map[string]func(t *testing.T) (addr string){
	"embedded": func(t *testing.T) string {
		server := miniredis.RunT(t)
		server.ClockTTL(true)
		return server.Addr()
	},
	"redis 8": func(t *testing.T) string { return testserver.StartRedis(t).Addr() },
}

// "one lease at a time is trusted", and "Each lease has a fence, higher than that of every earlier lease on its key,
// also after a hand-off, a crash, FLUSHALL": of processes that are killed or stopped, and of a store that forgets.
func TestProcesses(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults(t, start(t))
		})
	}
}

func faults(t *testing.T, addr string) {
	w := newRecord()
	var ps []*process
	for i := range 4 {
		ps = append(ps, start(t, w, arguments{Name: fmt.Sprint("p", i+1), Addr: addr}))
	}
	busy(t, ps)

	killed := ps[0].holds(t)
	ps[0].signal(t, syscall.SIGKILL)
	w.passesOn(t, killed)
	ps[0] = start(t, w, arguments{Name: "p5", Addr: addr})
	busy(t, ps)

	stopped := ps[1].holds(t)
	ps[1].signal(t, syscall.SIGSTOP)
	w.passesOn(t, stopped)
	ps[1].signal(t, syscall.SIGCONT)
	busy(t, ps)

	forgotten := ps[2].holds(t)
	from := clock()
	flush(t, addr)
	to := clock()
	// A process that comes now may have the key while its first holder still trusts it: those that wait ask again
	// later.
	ps = append(ps, start(t, w, arguments{Name: "p6", Addr: addr}))
	w.passesOn(t, forgotten)
	busy(t, ps)

	end(t, ps)
	h := w.history()
	h.Forgot = []history.Span{{From: from, To: to}}
	broken := h.Check()
	for _, b := range broken[:min(len(broken), 10)] {
		t.Error(b)
	}
	t.Logf("%d leases, %d times a rule is broken", len(h.Leases), len(broken))
	nothingLeft(t, addr)
}

func busy(t *testing.T, ps []*process) {
	t.Helper()
	for _, p := range ps {
		p.busy(t)
	}
}

// end waits until all have released everything and ended without an error.
func end(t *testing.T, ps []*process) {
	t.Helper()
	for _, p := range ps {
		_ = p.in.Close()
	}
	for _, p := range ps {
		p.ends(t)
	}
}

// passesOn waits until another holder has had the key.
func (w *record) passesOn(t *testing.T, before report) {
	t.Helper()
	w.await(t, "the next lease on "+before.Lease.Key, func(r report) bool {
		return r.Lease.Key == before.Lease.Key && r.Lease.Begin.After(before.Lease.Begin) && r.Ended
	})
}

func flush(t *testing.T, addr string) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = client.Close() }()
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

// nothingLeft: a process that comes after all others have ended gets each key at once.
func nothingLeft(t *testing.T, addr string) {
	t.Helper()
	store, done := open(addr)
	locker := lock.New(store, lock.Options{})
	for _, key := range keys {
		if _, err := locker.TryAcquire(t.Context(), key); err != nil {
			t.Errorf("something is left of those that ended: %v", err)
		}
	}
	if err := locker.Close(); err != nil {
		t.Error(err)
	}
	_ = done()
}

// What children report that do not share a lock is noticed.
func TestProcesses_Noticed(t *testing.T) {
	t.Parallel()
	w := newRecord()
	ps := []*process{start(t, w, arguments{Name: "p1"}), start(t, w, arguments{Name: "p2"})}
	for range 3 {
		busy(t, ps)
	}
	end(t, ps)
	broken := w.history().Check()
	if !slices.ContainsFunc(broken, func(b history.Broken) bool { return b.Rule == history.Exclusive }) {
		t.Errorf("found %v, want two holders at once", broken)
	}
}

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/store/storetest"
)

const (
	// laneKills is how often a leader is killed, on all databases together;
	// SHOP_TEST_LANE_KILLS says otherwise.
	laneKills      = 200
	laneKillsShort = 20

	laneRigs   = 3  // of each database: pairs of processes that run at once
	laneBuyers = 24 // who come at once, for each kill
)

// A lane's leader is killed (kill -9) in mid-batch, at each of the moments in the
// table and with dozens of buyers in the line: all of them ask another instance,
// with the same key. Each gets one outcome, no acknowledged order is missing, none
// is there twice, and the audit (I1 to I5) is clean. Not parallel: it is busy.
func TestServe_killedLeader(t *testing.T) {
	kills := laneKills
	if testing.Short() {
		kills = laneKillsShort
	}
	if text, given := os.LookupEnv("SHOP_TEST_LANE_KILLS"); given {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatalf("SHOP_TEST_LANE_KILLS: %v", err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, seed))
	databases := map[string]func(testing.TB) string{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB}

	var left atomic.Int64 // kills that no rig has taken on
	left.Store(int64(kills))
	var rigs []*killRig
	for name, dsn := range databases {
		for range laneRigs {
			redis := fmt.Sprintf("redis://%s/%d", testserver.Redis(t), len(rigs))
			rigs = append(rigs, throughProxies(t, name, redis, dsn(t), rand.New(rand.NewPCG(dice.Uint64(), 1))))
		}
	}
	began := time.Now()
	var all sync.WaitGroup
	for _, rig := range rigs {
		all.Go(func() { rig.run(&left) })
	}
	all.Wait()
	killed := map[string]int{}
	for _, rig := range rigs {
		for what, n := range rig.killed {
			killed[rig.name+", "+what] += n
		}
	}
	t.Logf("%d kills in %v: %v", kills, time.Since(began).Round(time.Second), killed)
	for _, rig := range rigs {
		rig.wantBooks()
	}
}

// The same on a SQLite file, where no statement can be watched: the leader is killed
// while it has the lease and thinks, with its buyers in the line.
func TestServe_killedLeaderOnFile(t *testing.T) {
	locks := lockServer(t)
	r := newKillRig(t, "SQLite", locks, "--data", t.TempDir())
	if !r.open(r.seats[0]) || !r.open(r.seats[1]) {
		return
	}
	for round := range 4 {
		victim, other := r.seats[round%2], r.seats[(round+1)%2]
		var all sync.WaitGroup
		for i := range laneBuyers {
			all.Go(func() { r.buyer(fmt.Sprintf("buyer-%d-%d", round, i), victim, other, "Shop-Think: 100ms") })
		}
		awaitHolder(t, locks, "demo-mug", nil)
		victim.shop.signal(t, syscall.SIGKILL)
		all.Wait()
		if !r.open(victim) {
			return
		}
	}
	r.wantBooks()
}

// moments are the statements of a batch at which its leader is killed: its first,
// the one that takes the units, the last before the COMMIT, and that.
func moments() []string {
	return []string{"INSERT INTO `idempotency_keys`", "UPDATE `skus`", "INSERT INTO `movements`", "COMMIT"}
}

// fates are what becomes of the statement: the server never gets it, gets it and
// answers nobody, or answers a process that is gone.
func fates() map[storetest.Fate]string {
	return map[storetest.Fate]string{storetest.Drop: "dropped", storetest.Mute: "muted", storetest.Pass: "passed"}
}

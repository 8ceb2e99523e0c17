// Package fault has what the fault suite breaks, as a table. Each fault breaks something and heals it again; what it
// draws comes from a seed.
package fault

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/faults/history"
	"example.com/shop/loadtest/faults/system"
	"example.com/shop/loadtest/shopclient"
)

// Fault is one way to break a system.
type Fault struct {
	Name  string
	On    system.Kind // the least that it needs: those of Embedded run on MySQL as well
	Break func(context.Context, *Target) error
	About string

	Strategies []string // by which the shops sell, which take turns; nil for lanes, redis and batch
	Buyers     int      // 0 for 14
	Unnoticed  bool     // no request may fail or be repeated
	MovesClock bool     // needs shops whose clocks can be moved
	LockAlone  bool     // nothing but the lock, or a shop that holds leases, is broken: lanes and batch go on
	Loses      bool     // what was acknowledged may be lost: a control
}

// Target is what is broken, and by which dice. What was done goes into the history.
type Target struct {
	*system.System
	History *history.History
	Dice    *rand.Rand
	Commits atomic.Int64 // that got no answer
}

// victim is one of the shops.
func (t *Target) victim() *system.Shop { return t.Shops[t.Dice.IntN(len(t.Shops))] }

// wait lets a time pass between the two.
func (t *Target) wait(ctx context.Context, least, most time.Duration) {
	shopclient.Pause(ctx, least+time.Duration(t.Dice.Int64N(int64(most-least))))
}

// All is the table. Adding a fault is adding a row.
func All() []Fault {
	return []Fault{
		{Name: "nothing", On: system.Embedded, Break: nothing, Unnoticed: true,
			About: "nothing is broken: no request fails"},
		{Name: "shop-killed", On: system.Embedded, Break: killShop, LockAlone: true,
			About: "a shop is killed by SIGKILL and started again"},
		{Name: "shop-paused", On: system.Embedded, Break: pauseShop,
			About: "a shop is stopped for longer than its leases last, and goes on"},
		{Name: "shop-paused-before-begin", On: system.MySQL, Break: pauseAt("START TRANSACTION"),
			About: "the same, as it begins any transaction"},
		{Name: "shop-paused-in-transaction", On: system.MySQL, Break: pauseAt("UPDATE skus SET "),
			About: "the same, as it takes the units"},
		{Name: "shop-paused-before-commit", On: system.MySQL, Break: pauseAt("COMMIT"),
			About: "the same, as it commits any transaction"},
		{Name: "rolling-restart", On: system.Embedded, Break: restartAll, Unnoticed: true,
			About: "each shop is stopped and started, one after the other: no request fails"},
		{Name: "clocks-apart", On: system.Embedded, Break: moveClocks, MovesClock: true,
			About: "one shop's clock is an hour ahead, another's an hour behind"},

		{Name: "leases-left", On: system.Embedded, Break: leaveLeases, LockAlone: true,
			About: "a holder has crashed and left leases on all SKUs, which last for three seconds"},
		{Name: "redis-flushed", On: system.Embedded, Break: flushRedis, LockAlone: true,
			About: "FLUSHALL, several times: all leases and fences are gone"},
		{Name: "redis-restarted", On: system.Embedded, Break: restartRedis, LockAlone: true,
			About: "Redis is killed and starts empty"},
		{Name: "redis-silent", On: system.Embedded, Break: silence(everyRedis, true, true, pastWait), LockAlone: true,
			About: "Redis answers no shop for longer than leases last"},
		{Name: "redis-full", On: system.MySQL, Break: fillRedis, LockAlone: true,
			About: "Redis is full, and refuses writes (OOM) for longer than leases last"},
		{Name: "redis-failover", On: system.Sentinel, Break: failOver, LockAlone: true,
			About: "Sentinels promote a replica that was cut off before the leases were taken"},
		{Name: "redis-slot-migrated", On: system.Cluster, Break: moveSlots, LockAlone: true,
			About: "slots with the locks' keys migrate to another master of a Redis Cluster, and back, each half-moved for longer than leases last"},
		{Name: "redis-cut-off", On: system.Embedded, Break: silence(oneRedis, true, true, pastWait), LockAlone: true,
			About: "one shop is cut off from Redis"},
		{Name: "redis-cut-off-requests", On: system.Embedded, Break: silence(oneRedis, true, false, pastWait), LockAlone: true,
			About: "one shop's commands do not arrive at Redis, whose answers would"},
		{Name: "redis-cut-off-answers", On: system.Embedded, Break: silence(oneRedis, false, true, pastWait), LockAlone: true,
			About: "one shop's commands arrive at Redis, whose answers do not"},
		{Name: "redis-slow", On: system.Embedded, Break: delay(oneRedis), LockAlone: true,
			About: "Redis' answers to one shop are 5 s late"},

		{Name: "mysql-cut-off", On: system.MySQL, Break: silence(oneMySQL, true, true, pastTTL),
			About: "one shop is cut off from MySQL"},
		{Name: "mysql-cut-off-requests", On: system.MySQL, Break: silence(oneMySQL, true, false, pastTTL),
			About: "one shop's statements do not arrive at MySQL, whose answers would"},
		{Name: "mysql-cut-off-answers", On: system.MySQL, Break: silence(oneMySQL, false, true, pastTTL),
			About: "one shop's statements arrive at MySQL, whose answers do not"},
		{Name: "mysql-slow", On: system.MySQL, Break: delay(oneMySQL),
			About: "MySQL's answers to one shop are 5 s late"},
		{Name: "commit-not-sent", On: system.MySQL, Break: loseCommits(testserver.Drop),
			About: "connections break before a COMMIT arrives"},
		{Name: "commit-not-answered", On: system.MySQL, Break: loseCommits(testserver.Mute),
			About: "connections break after a COMMIT has arrived"},
		{Name: "connections-killed", On: system.MySQL, Break: breakConnections,
			About: "all connections to MySQL break, several times"},
		{Name: "rows-locked", On: system.MySQL, Break: lockRows,
			About: "another transaction locks the rows of the SKUs for longer than the shops wait (1205)"},
		{Name: "deadlocks", On: system.MySQL, Break: deadlock,
			About: "another program locks the rows of carts the other way round (1213)"},
		{Name: "mysql-killed", On: system.MySQL, Break: killMySQL,
			About: "mysqld is killed by SIGKILL and started again"},
		{Name: "mysql-read-only", On: system.MySQL, Break: makeReadOnly,
			About: "MySQL takes no writes, as after a failover behind one name, and then does again"},
		{Name: "disk-full", On: system.Disk, Break: fillDisk,
			About: "MySQL's disk is full, until something is deleted"},

		{Name: "primary-killed", On: system.Group, Break: withoutPrimary(testserver.Kill, testserver.Restart),
			About: "the group's primary is killed; it is started again when another one has taken over"},
		{Name: "primary-paused", On: system.Group, Break: withoutPrimary(testserver.Pause, testserver.Unpause),
			About: "the group's primary stands still, is replaced, and comes back as a zombie"},
		{Name: "primary-cut-off", On: system.Group, Break: withoutPrimary(testserver.Isolate, testserver.Reconnect),
			About: "the group's primary is cut off from the others, and the shops still reach it"},
		{Name: "majority-lost", On: system.Group, Break: loseMajority,
			About: "both secondaries of the group are killed, so that none takes writes, and the group is formed anew, for which the primary is killed, too"},

		{Name: "replica-promoted", On: system.Replica, Break: LoseMachine, Loses: true,
			About: "the source loses its network and is killed, and its replica takes over"},
		{Name: "mysql-killed-unflushed", On: system.MySQL, Break: killUnflushed, Loses: true,
			About: "mysqld is killed, and has flushed its logs once a second"},
	}
}

// Named returns the fault of this name.
func Named(name string) (f Fault, ok bool) {
	all := All()
	i := slices.IndexFunc(all, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return f, false
	}
	return all[i], true
}

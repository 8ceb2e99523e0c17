package faults

import (
	"slices"
	"time"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/faults/system"
)

// fault is one way to break a system.
type fault struct {
	name  string
	on    system.Kind // the least that it needs: those of Embedded run on MySQL as well
	means meaning
	about string
	steps steps // break something, and heal it
}

// meaning is what a fault means for the promises.
type meaning int

const (
	ordinary   meaning = iota
	unnoticed          // no request may fail or be repeated
	clockMoves         // the shops' clocks differ, for which they are built otherwise
	lockAlone          // nothing but the lock, or a shop that holds leases, is broken: lanes and batch go on
	loses              // what was acknowledged may be lost: a control
)

// allFaults is the table. Adding a fault is adding a row.
func allFaults() []fault {
	const ms = time.Millisecond
	const kill, restart = testserver.Kill, testserver.Restart
	return []fault{
		{"nothing", system.Embedded, unnoticed, "nothing is broken: no request fails", steps{outlast}},
		{"shop-killed", system.Embedded, lockAlone, "a shop is killed by SIGKILL and started again",
			steps{killShop, wait(0, pastTTL), startShop}},
		{"shop-paused", system.Embedded, ordinary, "a shop is stopped for longer than its leases last, and goes on",
			steps{pauseShop, outlast, resumeShop}},
		{"shop-paused-before-begin", system.MySQL, ordinary, "the same, as it begins any transaction",
			steps{pauseShopAt("START TRANSACTION")}},
		{"shop-paused-in-transaction", system.MySQL, ordinary, "the same, as it takes the units",
			steps{pauseShopAt("UPDATE skus SET ")}},
		{"shop-paused-before-commit", system.MySQL, ordinary, "the same, as it commits any transaction",
			steps{pauseShopAt("COMMIT")}},
		{"rolling-restart", system.Embedded, unnoticed, "each shop is stopped and started, one after the other: no request fails",
			steps{restartShops(0, 0, 0)}},
		{"clocks-apart", system.Embedded, clockMoves, "one shop's clock is an hour ahead, another's an hour behind",
			steps{restartShops(time.Hour, -time.Hour), outlast, restartShops(0, 0), outlast}},

		{"leases-left", system.Embedded, lockAlone, "a holder has crashed and left leases on all SKUs, which last for three seconds",
			steps{leaveLeases}},
		{"redis-flushed", system.Embedded, lockAlone, "FLUSHALL, several times: all leases and fences are gone",
			slices.Repeat(steps{redisDo("FLUSHALL"), wait(0, 100*ms)}, 5)},
		{"redis-restarted", system.Embedded, lockAlone, "Redis is killed and starts empty",
			steps{redis(kill), wait(0, 500*ms), redis(restart)}},
		{"redis-silent", system.Embedded, lockAlone, "Redis answers no shop for longer than leases last",
			steps{silence(everyRedis, true, true, pastWait)}},
		{"redis-full", system.MySQL, lockAlone, "Redis is full, and refuses writes (OOM) for longer than leases last",
			steps{redisDo("CONFIG", "SET", "maxmemory", "1"), outlast, redisDo("CONFIG", "SET", "maxmemory", "0")}}, // noeviction
		{"redis-failover", system.Sentinel, lockAlone, "Sentinels promote a replica that was cut off before the leases were taken",
			steps{cutReplicas, wait(100*ms, time.Second), failOver, restoreReplicas}},
		{"redis-slot-migrated", system.Cluster, lockAlone,
			"slots with the locks' keys migrate to another master of a Redis Cluster, and back, each half-moved for longer than leases last",
			steps{moveSlots(1), moveSlots(2)}}, // of three masters
		{"redis-cut-off", system.Embedded, lockAlone, "one shop is cut off from Redis",
			steps{silence(oneRedis, true, true, pastWait)}},
		{"redis-cut-off-requests", system.Embedded, lockAlone, "one shop's commands do not arrive at Redis, whose answers would",
			steps{silence(oneRedis, true, false, pastWait)}},
		{"redis-cut-off-answers", system.Embedded, lockAlone, "one shop's commands arrive at Redis, whose answers do not",
			steps{silence(oneRedis, false, true, pastWait)}},
		{"redis-slow", system.Embedded, lockAlone, "Redis' answers to one shop are 5 s late", steps{delay(oneRedis)}},

		{"mysql-cut-off", system.MySQL, ordinary, "one shop is cut off from MySQL",
			steps{silence(oneMySQL, true, true, pastTTL)}},
		{"mysql-cut-off-requests", system.MySQL, ordinary, "one shop's statements do not arrive at MySQL, whose answers would",
			steps{silence(oneMySQL, true, false, pastTTL)}},
		{"mysql-cut-off-answers", system.MySQL, ordinary, "one shop's statements arrive at MySQL, whose answers do not",
			steps{silence(oneMySQL, false, true, pastTTL)}},
		{"mysql-slow", system.MySQL, ordinary, "MySQL's answers to one shop are 5 s late", steps{delay(oneMySQL)}},
		{"commit-not-sent", system.MySQL, ordinary, "connections break before a COMMIT arrives", steps{loseCommits(testserver.Drop)}},
		{"commit-not-answered", system.MySQL, ordinary, "connections break after a COMMIT has arrived", steps{loseCommits(testserver.Mute)}},
		{"connections-killed", system.MySQL, ordinary, "all connections to MySQL break, several times",
			slices.Repeat(steps{breakConnections, wait(50*ms, 300*ms)}, 3)},
		{"rows-locked", system.MySQL, ordinary, "another transaction locks the rows of the SKUs for longer than the shops wait (1205)",
			steps{lockRows}},
		{"deadlocks", system.MySQL, ordinary, "another program locks the rows of carts the other way round (1213)", steps{deadlock}},
		{"mysql-killed", system.MySQL, ordinary, "mysqld is killed by SIGKILL and started again",
			steps{mysql(kill), wait(0, 500*ms), mysql(restart)}},
		{"mysql-read-only", system.MySQL, ordinary, "MySQL takes no writes, as after a failover behind one name, and then does again",
			steps{sql("SET GLOBAL super_read_only = 1"), outlast, sql("SET GLOBAL read_only = 0")}}, // the shops' user is root
		{"disk-full", system.Disk, ordinary, "MySQL's disk is full, until something is deleted",
			steps{fillDisk, wait(500*ms, 2*time.Second), freeDisk}},

		{"primary-killed", system.Group, ordinary, "the group's primary is killed; it is started again when another one has taken over",
			withoutPrimary(kill, restart)},
		{"primary-paused", system.Group, ordinary, "the group's primary stands still, is replaced, and comes back as a zombie",
			withoutPrimary(testserver.Pause, testserver.Unpause)},
		{"primary-cut-off", system.Group, ordinary, "the group's primary is cut off from the others, and the shops still reach it",
			withoutPrimary(testserver.Isolate, testserver.Reconnect)},
		{"majority-lost", system.Group, ordinary,
			"both secondaries of the group are killed, so that none takes writes, and the group is formed anew, for which the primary is killed, too",
			steps{secondaries(kill), wait(0, 2*time.Second), secondaries(restart), mysql(kill), mysql(restart), rejoin}},

		{"replica-promoted", system.Replica, loses, "the source loses its network and is killed, and its replica takes over", loseMachine()},
		{"mysql-killed-unflushed", system.MySQL, loses, "mysqld is killed, and has flushed its logs once a second", steps{
			sql("SET GLOBAL innodb_flush_log_at_trx_commit = 0", "SET GLOBAL sync_binlog = 0"), wait(300*ms, time.Second),
			mysql(kill), wait(0, 500*ms), mysql(restart), // ends these settings
		}},
	}
}

// faultNamed returns the fault of this name.
func faultNamed(name string) (f fault, ok bool) {
	all := allFaults()
	i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
	if i < 0 {
		return f, false
	}
	return all[i], true
}

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/faults/history"
	"example.com/shop/loadtest/faults/system"
	"example.com/shop/loadtest/shopclient"
)

// fault is a way to break a system.
type fault struct {
	name  string
	on    system.Kind // the servers that it needs; a fault of Embedded also runs on MySQL
	means meaning
	about string
	steps steps // break the system, and heal it
}

// meaning is the effect of a fault on the promises.
type meaning int

const (
	ordinary    meaning = iota
	unnoticed           // no request may fail or be repeated
	clocksApart         // the shops' clocks differ, for which they are built differently
	lockAlone           // only the lock, or a shop that holds leases, is broken: lanes and batch go on
	answered            // each request must get an answer, for which clients wait long enough
	upgrades            // the shops are of an older version at first
	loses               // acknowledged orders may be lost: a control
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
			steps{pauseShopAt("START TRANSACTION", outlast)}},
		{"shop-paused-in-transaction", system.MySQL, ordinary, "the same, as it takes the units",
			steps{pauseShopAt("UPDATE skus SET ", outlast)}},
		{"shop-paused-before-commit", system.MySQL, ordinary, "the same, as it commits any transaction",
			steps{pauseShopAt("COMMIT", outlast)}},
		{"shop-stopped", system.MySQL, ordinary, "a shop is stopped for 20 s in a transaction that has changed SKUs: each SKU is sold every 4 s",
			steps{wait(time.Second, 2*time.Second), sells("SKU", 4*time.Second),
				pauseShopAt("INSERT INTO `movements`", avoided(wait(20*time.Second, 21*time.Second)))}},
		{"rolling-restart", system.Embedded, unnoticed, "each shop is stopped and started, one after the other: no request fails",
			steps{restartShops(0, 0, 0)}},
		{"clocks-apart", system.Embedded, clocksApart, "one shop's clock is an hour ahead, another's an hour behind",
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
		{"redis-slow", system.Embedded, lockAlone, "Redis' answers to one shop are 5 s late",
			steps{breaking(oneRedis, delay, 5*time.Second, 6*time.Second)}},

		{"mysql-cut-off", system.MySQL, ordinary, "one shop is cut off from MySQL",
			steps{silence(oneMySQL, true, true, pastTTL)}},
		{"mysql-cut-off-requests", system.MySQL, ordinary, "one shop's statements do not arrive at MySQL, whose answers would",
			steps{silence(oneMySQL, true, false, pastTTL)}},
		{"mysql-cut-off-answers", system.MySQL, ordinary, "one shop's statements arrive at MySQL, whose answers do not",
			steps{silence(oneMySQL, false, true, pastTTL)}},
		{"mysql-slow", system.MySQL, ordinary, "MySQL's answers to one shop are 5 s late",
			steps{breaking(oneMySQL, delay, 5*time.Second, 6*time.Second)}},
		{"commit-not-sent", system.MySQL, ordinary, "connections break before a COMMIT arrives", steps{loseCommits(testserver.Drop)}},
		{"commit-not-answered", system.MySQL, ordinary, "connections break after a COMMIT has arrived", steps{loseCommits(testserver.Mute)}},
		{"connections-killed", system.MySQL, ordinary, "all connections to MySQL break, several times",
			slices.Repeat(steps{breaking(everyMySQL, hangUp, 50*ms, 300*ms)}, 3)},
		{"skus-locked", system.MySQL, ordinary, "another session locks the rows of SKUs for 8 s, longer than a shop waits (1205): lanes and batch sell every 2 s",
			locked(row, "buyer-", "SELECT * FROM skus WHERE name IN ('%[1]s-deep', '%[1]s-hot') FOR UPDATE")},
		{"buyer-locked", system.MySQL, ordinary, "the same, the row of a buyer",
			locked(row, "buyer-0", "SELECT * FROM buyers WHERE buyer = '%[1]s-buyer-0' FOR UPDATE")},
		{"order-locked", system.MySQL, ordinary, "the same, the rows of pending orders",
			locked(row, "buyer-1", "SELECT * FROM orders FORCE INDEX (PRIMARY) WHERE buyer LIKE '%[1]s-buyer-1%%' AND status = 'pending' FOR UPDATE")},
		{"payment-locked", system.MySQL, ordinary, "the same, the rows of payments that their provider repeats",
			locked(row, "buyer-", "SELECT * FROM payments WHERE id LIKE 'pi-%[1]s-buyer-%%' FOR UPDATE")},
		{"units-locked", system.MySQL, ordinary, "the same, the row that counts a buyer's units of a SKU with a limit",
			locked(row, "buyer-14", "INSERT INTO buyer_units VALUES ('%[1]s-few', '%[1]s-buyer-14', 0) ON DUPLICATE KEY UPDATE units = units")},
		{"buyers-gap-locked", system.MySQL, ordinary, "another session locks the gap for the rows of new buyers for 8 s: lanes and batch sell every 3 s",
			locked(gap, "new-", "SELECT * FROM buyers WHERE buyer LIKE '%[1]s-new-%%' FOR UPDATE")},
		{"keys-gap-locked", system.MySQL, ordinary, "the same, the gap for the keys of a buyer",
			locked(gap, "buyer-0", "SELECT * FROM idempotency_keys WHERE buyer = '%[1]s-buyer-0' FOR UPDATE")},
		{"ledger-gap-locked", system.MySQL, ordinary, "the same, the gap at the end of a SKU's ledger",
			locked(gap, "buyer-14", "SELECT * FROM movements WHERE sku = '%[1]s-few' AND id > 'f' FOR UPDATE")},
		{"read-locked", system.MySQL, answered, "FLUSH TABLES WITH READ LOCK for 15 s, as some backups do, while a load balancer asks whether the shops are ready",
			steps{readLock}},
		{"upgrade", system.MySQL, upgrades, "the newest migration waits for a reader's transaction of 20 s, and then shops of the version before are replaced one by one: a sale every 5 s",
			steps{sells("", 5*time.Second), migrate, restartShops(0, 0, 0)}},
		{"deadlocks", system.MySQL, ordinary, "another program locks the rows of carts the other way round (1213)", steps{deadlock}},
		{"mysql-killed", system.MySQL, ordinary, "mysqld is killed by SIGKILL and started again",
			steps{mysql(kill), wait(0, 500*ms), mysql(restart)}},
		{"mysql-read-only", system.MySQL, ordinary, "MySQL takes no writes, as after a failover behind one name, and then does again",
			steps{sql("SET GLOBAL super_read_only = 1"), outlast, sql("SET GLOBAL read_only = 0")}}, // super_read_only, because the shops' user is root
		{"disk-full", system.Disk, ordinary, "MySQL's disk is full, until something is deleted",
			steps{fillDisk, wait(500*ms, 2*time.Second), freeDisk}},

		{"primary-killed", system.Group, ordinary, "the group's primary is killed; it is started again when another one has taken over",
			withoutPrimary(kill, restart)},
		{"primary-paused", system.Group, ordinary, "the group's primary stands still, is replaced, and comes back as a zombie",
			withoutPrimary(testserver.Pause, testserver.Unpause)},
		{"primary-cut-off", system.Group, ordinary, "the group's primary is cut off from the others, and the shops still reach it",
			withoutPrimary(testserver.Isolate, testserver.Reconnect)},
		{"majority-lost", system.Group, ordinary,
			"both secondaries of the group are killed, so that none takes writes, and the group is formed anew, for which the primary is also killed",
			steps{secondaries(kill), wait(0, 2*time.Second), secondaries(restart), mysql(kill), mysql(restart), rejoin}},

		{"replica-promoted", system.Replica, loses, "the source loses its network and is killed, and its replica takes over", loseMachine()},
		{"mysql-killed-unflushed", system.MySQL, loses, "mysqld is killed, and has flushed its logs once a second", steps{
			sql("SET GLOBAL innodb_flush_log_at_trx_commit = 0", "SET GLOBAL sync_binlog = 0"), wait(300*ms, time.Second),
			mysql(kill), wait(0, 500*ms), mysql(restart), // resets the settings
		}},
	}
}

func faultNamed(name string) (f fault, ok bool) {
	all := allFaults()
	i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
	if i < 0 {
		return f, false
	}
	return all[i], true
}

// step is one action of a fault. An error ends the history.
type step func(context.Context, *target) error

type steps []step

const (
	pastTTL  = system.LockTTL + 300*time.Millisecond // longer than a lease lasts after its last renewal
	pastWait = 2500 * time.Millisecond               // longer than a shop by lanes may take to answer
)

// target is the system to break, with the dice for random choices. Its history records the actions.
type target struct {
	*system.System
	*history.History
	dice    *rand.Rand
	victim  *system.Shop       // the shop to break
	primary *testserver.Server // the MySQL that takes writes when the fault begins; nil without one
}

// wait waits for a random time between least and most.
func wait(least, most time.Duration) step {
	return func(ctx context.Context, t *target) error {
		shopclient.Pause(ctx, least+time.Duration(t.dice.Int64N(int64(most-least))))
		return ctx.Err()
	}
}

// outlast waits longer than leases last.
func outlast(ctx context.Context, t *target) error { return wait(pastTTL, 2*pastTTL)(ctx, t) }

func killShop(_ context.Context, t *target) error    { return t.victim.Process.Load().Kill() }
func startShop(ctx context.Context, t *target) error { return t.victim.Start(ctx) }
func pauseShop(_ context.Context, t *target) error   { return t.victim.Process.Load().Pause() }
func resumeShop(_ context.Context, t *target) error  { return t.victim.Process.Load().Resume() }

// pauseShopAt pauses a shop when it sends a statement. The statement arrives when the shop goes on.
func pauseShopAt(statement string, meanwhile step) step {
	return func(ctx context.Context, t *target) error {
		paused, resume := make(chan error, 1), make(chan struct{})
		defer close(resume)
		var first sync.Once
		for _, link := range t.victim.SQL {
			defer link.Heal()
			link.Judge(func(sent string) testserver.Fate {
				if strings.HasPrefix(sent, statement) {
					first.Do(func() { paused <- pauseShop(ctx, t); <-resume })
				}
				return testserver.Pass
			})
		}
		select {
		case err := <-paused:
			return errors.Join(err, meanwhile(ctx, t), resumeShop(ctx, t))
		case <-time.After(5 * time.Second):
			return errors.New("the shop sent no " + statement)
		}
	}
}

// avoided makes clients avoid the victim during a step, as a load balancer does.
func avoided(during step) step {
	return func(ctx context.Context, t *target) error {
		process := t.victim.Process.Swap(nil)
		defer t.victim.Process.Store(process)
		return during(ctx, t)
	}
}

// restartShops stops and starts one shop after the other, each with one of the clocks. It begins with the victim.
func restartShops(clocks ...time.Duration) step {
	return func(ctx context.Context, t *target) error {
		first := slices.Index(t.Shops, t.victim)
		for i, clock := range clocks {
			shop := t.Shops[(first+i)%len(t.Shops)]
			if err := shop.Stop(ctx); err != nil {
				return err
			}
			shop.Clock = clock
			if err := shop.Start(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// redis executes a fault of Redis, and mysql a fault of the MySQL that took writes when the fault began.
func redis(f testserver.Fault) step {
	return func(ctx context.Context, t *target) error { return t.Redis.Do(ctx, f) }
}
func mysql(f testserver.Fault) step {
	return func(ctx context.Context, t *target) error { return t.primary.Do(ctx, f) }
}

func redisDo(command ...any) step {
	return func(ctx context.Context, t *target) error {
		return testserver.AskRedis(ctx, t.Redis.Addr(), command...).Err()
	}
}

// sql runs statements on one connection, as root.
func sql(statements ...string) step {
	return func(ctx context.Context, t *target) error { return t.primary.SQL(ctx, statements...) }
}

func fillDisk(ctx context.Context, t *target) error { return t.primary.FillDisk(ctx) }
func freeDisk(ctx context.Context, t *target) error { return t.primary.FreeDisk(ctx) }

// leaveLeases writes values of an unknown layout, which the lock treats as leases until they expire.
func leaveLeases(ctx context.Context, t *target) error {
	const last = 3 * time.Second
	for _, sku := range t.SKUs.All() {
		if err := redisDo("SET", "lock:{sku:"+sku+"}", "crashed", "PX", last.Milliseconds())(ctx, t); err != nil {
			return err
		}
	}
	shopclient.Pause(ctx, last)
	return nil
}

// cutReplicas makes the replicas lack the leases that the master grants from then on.
func cutReplicas(ctx context.Context, t *target) error { return t.RedisGroup.CutReplicas(ctx) }

func failOver(ctx context.Context, t *target) error {
	err := t.RedisGroup.FailOver(ctx)
	t.Replaced = t.Now()
	return err
}
func restoreReplicas(ctx context.Context, t *target) error { return t.RedisGroup.Restore(ctx) }

// moveSlots moves the slots of two SKUs to the master that is this many places further. Each slot stays half-moved for
// longer than leases last.
func moveSlots(further int) step {
	return func(ctx context.Context, t *target) error {
		for _, sku := range []string{t.SKUs.Deep, t.SKUs.Hot} {
			first := "lock:{sku:" + sku + "}"
			if t.dice.IntN(2) == 0 {
				first += ":line"
			}
			if err := t.RedisGroup.MoveSlot(ctx, further, func() { _ = outlast(ctx, t) }, first); err != nil {
				return err
			}
		}
		return nil
	}
}

// The links that a fault breaks.
func oneRedis(t *target) []*testserver.Link { return []*testserver.Link{t.victim.Redis} }
func oneMySQL(t *target) []*testserver.Link { return t.victim.SQL }
func everyRedis(t *target) (links []*testserver.Link) {
	for _, shop := range t.Shops {
		links = append(links, shop.Redis)
	}
	return links
}
func everyMySQL(t *target) (links []*testserver.Link) {
	for _, shop := range t.Shops {
		links = append(links, shop.SQL...)
	}
	return links
}

// breaking breaks links, waits, and heals them.
func breaking(links func(*target) []*testserver.Link, do func(*testserver.Link), least, most time.Duration) step {
	return func(ctx context.Context, t *target) error {
		for _, link := range links(t) {
			defer link.Heal()
			do(link)
		}
		return wait(least, most)(ctx, t)
	}
}

func silence(links func(*target) []*testserver.Link, requests, answers bool, least time.Duration) step {
	return breaking(links, func(link *testserver.Link) { link.Silence(requests, answers) }, least, least+pastTTL)
}

func delay(link *testserver.Link)  { link.Delay(5 * time.Second) }
func hangUp(link *testserver.Link) { link.Cut(false) }

// loseCommits breaks the connections of a third of all COMMITs, for a second.
func loseCommits(fate testserver.Fate) step {
	return func(ctx context.Context, t *target) error {
		var mu sync.Mutex // links call judge concurrently
		for _, link := range everyMySQL(t) {
			defer link.Heal()
			link.Judge(func(statement string) testserver.Fate {
				mu.Lock()
				defer mu.Unlock()
				if statement == "COMMIT" && t.dice.IntN(3) == 0 {
					return fate
				}
				return testserver.Pass
			})
		}
		shopclient.Pause(ctx, time.Second) // meanwhile the links use the dice
		return nil
	}
}

// Isolation levels to lock existing rows, and to lock gaps, which only an INSERT waits for.
const (
	row = "READ COMMITTED"
	gap = "REPEATABLE READ"
)

// locked locks rows or gaps for 8 s. The statement's argument is the name of the history, which begins the buyers' names.
func locked(isolation, buyers, statement string) steps {
	within := map[string]time.Duration{row: 2 * time.Second, gap: 3 * time.Second}[isolation] // half of it for a busy machine
	return steps{wait(time.Second, 2*time.Second), sells("shop", within), func(ctx context.Context, t *target) (err error) {
		t.Locked = t.Name + "-" + buyers
		for again := true; again; again = isDeadlock(err) {
			err = t.primary.SQL(ctx, "USE shop", "SET SESSION TRANSACTION ISOLATION LEVEL "+isolation, "BEGIN",
				fmt.Sprintf(statement, t.Name), "DO SLEEP(8)", "ROLLBACK")
		}
		return err
	}}
}

// sells states the longest time without a sale, of each SKU, of each shop, or of any.
func sells(each string, within time.Duration) step {
	return func(_ context.Context, t *target) error {
		t.Each, t.MaxGap = each, within
		return nil
	}
}

// readLock holds a global read lock while a load balancer asks whether the shops are ready, and counts the connections.
func readLock(ctx context.Context, t *target) error {
	conns := shopclient.NewConnections(system.Instances, 10*time.Second)
	defer conns.CloseIdleConnections()
	locking, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for shopclient.Pause(locking, time.Second) {
			for _, shop := range t.Shops {
				running.Go(func() { _ = shop.Client(conns).Ready(locking) })
			}
			var open int
			_ = t.DB.QueryRowContext(locking, "SELECT COUNT(*) FROM information_schema.processlist").Scan(&open)
			t.MySQLConns = max(t.MySQLConns, open)
		}
	})
	err := t.primary.SQL(ctx, "FLUSH TABLES WITH READ LOCK", "DO SLEEP(15)", "UNLOCK TABLES")
	end()
	running.Wait()
	return err
}

// migrate migrates the schema while a reader's transaction is open, and returns when both have ended.
func migrate(ctx context.Context, t *target) error {
	reading := make(chan error, 1)
	go func() {
		reading <- t.primary.SQL(ctx, "USE shop", "BEGIN", "SELECT 1 FROM skus, orders, order_lines, movements LIMIT 1", "DO SLEEP(20)", "ROLLBACK")
	}()
	shopclient.Pause(ctx, time.Second)
	return errors.Join(t.Upgrade(ctx), <-reading)
}

func isDeadlock(err error) bool { return err != nil && strings.Contains(err.Error(), "Error 1213 ") }

// deadlock locks the rows of carts in the opposite order, for a second. Its transactions have written more rows than a
// shop's, so that MySQL rolls back the shop's.
func deadlock(ctx context.Context, t *target) error {
	for end := time.Now().Add(time.Second); time.Now().Before(end) && ctx.Err() == nil; {
		var rows []string
		for range 100 {
			rows = append(rows, fmt.Sprintf("('%s')", uuid.NewString()))
		}
		err := t.primary.SQL(ctx, "BEGIN", "INSERT INTO shop.buyers (buyer) VALUES "+strings.Join(rows, ","),
			"SELECT name FROM shop.skus WHERE name = '"+t.SKUs.Hot+"' FOR UPDATE", "DO SLEEP(0.02)",
			"SELECT name FROM shop.skus WHERE name = '"+t.SKUs.Cold+"' FOR UPDATE", "ROLLBACK")
		if err != nil && !isDeadlock(err) {
			return err
		}
	}
	return nil
}

// withoutPrimary executes a fault of the primary, and ends it when another member takes writes.
func withoutPrimary(do, undo testserver.Fault) steps {
	return steps{mysql(do), takeOver, wait(0, time.Second), mysql(undo), rejoin}
}

// takeOver waits until another member of the group is the primary, or promotes the replica with all received transactions.
func takeOver(ctx context.Context, t *target) (err error) {
	if t.Group != nil {
		_, err = t.Group.Primary(ctx, t.primary)
	} else {
		err = t.MySQL[1].Promote(ctx)
	}
	t.Replaced = t.Now()
	return err
}

func rejoin(ctx context.Context, t *target) error { return t.Group.Rejoin(ctx) }

// secondaries executes a fault of all members of the group except the primary, one after the other, at most 0.3 s apart.
func secondaries(f testserver.Fault) step {
	return func(ctx context.Context, t *target) error {
		for _, member := range t.MySQL {
			if member == t.primary {
				continue
			}
			if err := errors.Join(member.Do(ctx, f), wait(0, 300*time.Millisecond)(ctx, t)); err != nil {
				return err
			}
		}
		return nil
	}
}

// loseMachine cuts the primary off from the others, so that they do not receive the orders that it still acknowledges,
// and kills it 0.3 to 0.6 s later.
func loseMachine() steps {
	return steps{
		wait(time.Second, 2*time.Second), mysql(testserver.Isolate), // after some sales
		wait(300*time.Millisecond, 600*time.Millisecond), mysql(testserver.Kill), takeOver,
	}
}

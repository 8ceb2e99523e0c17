package lab

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/app"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
)

// Names of the locks of correct strategies beside strategy.SharedLock: keys of the lockers that Offers
// takes, except the last three, which are no Lockers.
const (
	MemoryLock    = "memory" // excludes the goroutines of one instance; the others exclude all instances
	RedlockLock   = "redlock"
	MySQLLock     = "mysql"
	ZooKeeperLock = "zookeeper"
	NamedLock     = "named" // of MySQL
	CountLock     = "count" // a count in Redis, from which buyers take units
	HoldLock      = "hold"  // of the units of an order, until it is paid
)

// Offer is a strategy and its description.
type Offer struct {
	Name      string         `json:"name"`
	Lock      string         `json:"lock"`      // name of the lock that buyers wait for; empty for none
	LockEnds  string         `json:"lock_ends"` // empty without a lock
	Take      string         `json:"take"`      // how the stock row is changed, for display: a stock.TakeMode or "for-update"
	Designed  bool           `json:"designed"`  // to be correct, with any number of instances; the others are wrong on purpose
	Lesson    string         `json:"lesson"`    // one sentence
	Available bool           `json:"available"`
	Reason    string         `json:"reason,omitempty"` // why this shop cannot sell that way; empty if it can
	Strategy  order.Strategy `json:"-"`
}

// Parts are what a shop's strategies sell by.
type Parts struct {
	*app.Parts
	Lanes, Batch order.Strategy             // the strategies of these names
	Lockers      map[string]strategy.Locker // by the names of their locks
}

// Offers returns the table of all strategies, the default first. A new strategy is a new row. A strategy for which
// missing has a reason is listed but cannot be used: it may lack a part.
func Offers(p Parts, missing map[string]string) []Offer {
	all := append(p.right(), p.wrong()...)
	for i := range all {
		o := &all[i]
		o.LockEnds, o.Reason = lockEnds(o.Lock), missing[o.Name]
		o.Available = o.Reason == ""
		shops, err := strategy.New(o.Name, p.Shop, o.Strategy, p.Lockers[strategy.SharedLock])
		if err != nil { // a strategy of the lab alone
			shops = order.Replaying{Store: p.Shop.Store, Next: o.Strategy}
		}
		o.Strategy = shops
	}
	return all
}

// right are the strategies that are designed to be correct.
func (p Parts) right() []Offer {
	shop, lockers := p.Shop, p.Lockers
	fenced := func(lock string) order.Strategy { return strategy.Redis{Shop: shop, Locker: lockers[lock]} }
	reconciled := strategy.PreDeductReconciled{Shop: shop, Redis: p.Redis, Deadline: 5 * time.Second, Patience: 30 * time.Second}
	return []Offer{
		{Name: "lanes", Lock: strategy.SharedLock, Take: "fenced", Designed: true, Strategy: p.Lanes,
			Lesson: "One transaction sells to all buyers who wait in an instance, whichever SKUs they want, " +
				"under the leases of these SKUs: one commit for hundreds of orders."},
		{Name: "batch", Take: "conditional", Designed: true, Strategy: p.Batch,
			Lesson: "As lanes, but without leases: the transaction locks the rows of the stock and decides each order, " +
				"and the instances wait for each other in the database."},
		{Name: "redis", Lock: strategy.SharedLock, Take: "fenced", Designed: true,
			Lesson: "A lease in Redis makes the buyers of all instances wait their turn. The fence in the guarded update " +
				"stops a holder that writes after its lease has run out."},
		{Name: "redlock", Lock: RedlockLock, Take: "conditional", Designed: true,
			Strategy: strategy.Locked{Shop: shop, Locker: lockers[RedlockLock], Take: stock.Conditional},
			Lesson: "A lease from a majority of five Redis servers survives the loss of two servers. It has no fence, " +
				"so only the guarded update makes the strategy correct."},
		{Name: "mysql-lock", Lock: MySQLLock, Take: "fenced", Designed: true, Strategy: fenced(MySQLLock),
			Lesson: "A lease in a table of the database needs no second server; each lease costs two more transactions, and waiters poll."},
		{Name: "zookeeper", Lock: ZooKeeperLock, Take: "fenced", Designed: true, Strategy: fenced(ZooKeeperLock),
			Lesson: "ZooKeeper keeps the buyers in a queue of numbered nodes and wakes one buyer at a time. " +
				"The number is the fence. The servers of ZooKeeper agree on each lease."},
		{Name: "for-update", Take: "for-update", Designed: true,
			Lesson: "SELECT ... FOR UPDATE makes buyers wait in the database. Each waiting buyer holds a connection, " +
				"and the buyer whose turn it is locks the row while it thinks."},
		{Name: "optimistic", Take: "optimistic", Designed: true,
			Lesson: "No buyer waits: a buyer who finds the row changed since the read starts over. " +
				"That is cheap with few buyers, and expensive if all want the same SKU."},
		{Name: "conditional", Take: "conditional", Designed: true,
			Lesson: "No lock at all: the database compares and subtracts in one statement. Correct, but every buyer fights for the row."},
		{Name: "pre-deduct-reconciled", Lock: CountLock, Take: "conditional", Designed: true,
			Strategy: counted{reconciled, p.Redis},
			Lesson: "A count in Redis refuses most buyers before they reach the database. " +
				"Beside the count is a list of the orders that have taken units. A buyer who finds the count lost or an order " +
				"overdue counts again from the database."},
		{Name: "late-payment-guarded", Lock: HoldLock, Take: "conditional", Designed: true, Strategy: p.latePayment(true),
			Lesson: "An order holds its units for a while. A payment moves the order from pending to paid by a guarded " +
				"update; a payment that comes too late is refused, and the money goes back."},
		{Name: "get-lock", Lock: NamedLock, Take: "overwrite", Designed: true, Strategy: getLock{shop, p.Database, p.LockWait},
			Lesson: "GET_LOCK on the connection of the transaction, before BEGIN, released after COMMIT: " +
				"right on one primary, as long as nothing between shop and server changes connections."},
		{Name: "serializable", Take: Serializable, Designed: true, Strategy: p.at(sql.LevelSerializable),
			Lesson: "At SERIALIZABLE a row that was read stays as it is until the transaction ends: right, " +
				"but two buyers who have both read the row end in a deadlock, and one of them starts over."},
	}
}

// wrong returns the strategies that are wrong on purpose.
func (p Parts) wrong() []Offer {
	shop, lockers := p.Shop, p.Lockers
	unguarded := func(lock string) order.Strategy {
		return strategy.Locked{Shop: shop, Locker: lockers[lock], Take: stock.Overwrite}
	}
	redis, preDeduct := lockers[strategy.SharedLock], strategy.PreDeduct{Shop: shop, Redis: p.Redis}
	return []Offer{
		{Name: "none", Take: "overwrite", Strategy: strategy.None{Shop: shop},
			Lesson: "Read, think, write: all buyers who read before the first write are sold the same units."},
		{Name: "mutex", Lock: MemoryLock, Take: "overwrite", Strategy: unguarded(MemoryLock),
			Lesson: "A lock inside the process: right with one instance, wrong with two, because each instance has its own lock."},
		{Name: "setnx-expire", Lock: "setnx-expire", Take: "overwrite", Strategy: unguarded("setnx-expire"),
			Lesson: "SETNX, then EXPIRE: a process that dies between the two leaves a lock that never runs out, " +
				"and the SKU is never sold again; SET with NX and PX is one step."},
		{Name: "setex", Lock: "setex", Take: "overwrite", Strategy: unguarded("setex"),
			Lesson: "SETEX, or SET with an expiry and without NX, overwrites the lock of its holder: all callers get it at once."},
		{Name: "blind-del", Lock: "blind-del", Take: "overwrite", Strategy: unguarded("blind-del"),
			Lesson: "DEL without asking whose lock it is: a holder whose lock has run out deletes the lock of the next " +
				"holder and lets a third buyer in."},
		{Name: "get-then-del", Lock: "get-then-del", Take: "overwrite", Strategy: unguarded("get-then-del"),
			Lesson: "GET, compare, then DEL: the lock can pass to another buyer between the two; a script that compares and deletes is one step."},
		{Name: "release-before-commit", Lock: strategy.SharedLock, Take: "overwrite",
			Strategy: strategy.ReleaseBeforeCommit{Shop: shop, Locker: redis},
			Lesson:   "The right lock, released before the COMMIT: the next buyer reads stock that is about to change."},
		{Name: "short-lease", Lock: "short-lease", Take: "overwrite", Strategy: unguarded("short-lease"),
			Lesson: "A lease shorter than the work, without renewal or fence: the second buyer comes in while the first " +
				"still writes, and nothing notices."},
		{Name: "read-before-lock", Lock: strategy.SharedLock, Take: "overwrite", Strategy: strategy.ReadBeforeLock{Shop: shop, Locker: redis},
			Lesson: "The right lock, taken after reading: what was read can be sold while its buyer waits for the lock. " +
				"Read again once you have it."},
		{Name: "redlock-unguarded", Lock: RedlockLock, Take: "overwrite", Strategy: unguarded(RedlockLock),
			Lesson: "Redlock without a guard in the statement: five servers agree on the holder, but a holder that is late writes all the same."},
		{Name: "try-once", Lock: "try-once", Take: "conditional", Strategy: strategy.TryOnce{Shop: shop, Locker: lockers["try-once"]},
			Lesson: "A buyer who does not get the lock at once is refused as if nothing were left: right for a job, " +
				"which runs again later, but wrong for a buyer. Units are left over."},
		{Name: "reentrant", Lock: "reentrant", Take: "overwrite", Strategy: strategy.Reentrant{Shop: shop, Locker: lockers["reentrant"]},
			Lesson: "The holder calls a function that takes the same lock: it waits for itself until it gives up, " +
				"and so does everyone else. Nothing is ever sold."},
		{Name: "reentrant-count", Lock: "reentrant-count", Take: "overwrite",
			Strategy: strategy.Reentrant{Shop: shop, Locker: lockers["reentrant-count"]},
			Lesson: "A lock that counts how often its holder took it, by several commands: " +
				"HINCRBY and PEXPIRE are two steps, and DEL at zero does not ask whose lock it is."},
		{Name: "mysql-lock-ownerless", Lock: "mysql-lock-ownerless", Take: "overwrite", Strategy: unguarded("mysql-lock-ownerless"),
			Lesson: "A row as a lock, without an owner and a deadline: a process that dies leaves the row for ever, " +
				"and a job that deletes old rows may let a second buyer in."},
		{Name: "repeatable-read", Take: RepeatableRead, Strategy: p.at(sql.LevelRepeatableRead),
			Lesson: "It is in a transaction, but at REPEATABLE READ that reads from its snapshot, " +
				"and writes over what others have committed since."},
		{Name: "pre-deduct", Lock: CountLock, Take: "conditional", Strategy: counted{preDeduct, p.Redis},
			Lesson: "A count in Redis decides, and the guarded update follows: nothing is oversold, " +
				"but a process that dies between the two has taken units that nobody gets."},
		{Name: "pre-deduct-only", Lock: CountLock, Take: "none", Strategy: counted{strategy.PreDeductOnly{PreDeduct: preDeduct}, p.Redis},
			Lesson: "A count in Redis decides alone: when it is lost, or two instances load it, it begins again with units that are sold already."},
		{Name: "late-payment", Lock: HoldLock, Take: "conditional", Strategy: p.latePayment(false),
			Lesson: "The provider reports a payment and the shop records it, though the hold has ended and another buyer has the units."},
	}
}

// at returns the strategy that sells in one transaction, at a level of isolation.
func (p Parts) at(level sql.IsolationLevel) order.Strategy {
	shop := p.Shop
	shop.Store = isolatedStore{shop.Store, level}
	return strategy.InTransaction{Shop: shop}
}

func (p Parts) latePayment(guarded bool) order.Strategy {
	orders := order.New(order.Config{Store: p.Shop.Store, Ends: p.Seller})
	return latePayment{Shop: p.Shop, orders: orders, db: p.Database, guarded: guarded}
}

// counted is a strategy whose buyers take units from a count in Redis. The counts of a request that is
// stepped can be lost, as by FLUSHALL.
type counted struct {
	order.Strategy
	redis redis.UniversalClient
}

func (c counted) Sell(ctx context.Context, d *order.Draft) error {
	var keys []string
	for _, line := range d.Lines {
		keys = append(keys, strategy.CountKeys(line.SKU)...)
	}
	workIn(ctx).of.asksFor(asked{event: CountLost, end: func(ctx context.Context) (bool, error) {
		deleted, err := c.redis.Del(ctx, keys...).Result()
		return deleted > 0, err
	}})
	return c.Strategy.Sell(ctx, d)
}

// Values of Offer.LockEnds: what ends a lock where its holder does not.
const (
	EndsWithProcess = "process" // and another process has its own
	EndsAsLease     = "lease"   // its TTL, which the holder's process renews
	EndsByTTL       = "ttl"     // also while the holder works
	EndsLate        = "late"    // its TTL, after the waiters have given up
	EndsNever       = "never"   // unless another deletes it
	EndsWithAnswer  = "answer"  // the answer to its request does, or it is lost
	EndsWithSession = "session" // its session of the database does
)

func lockEnds(name string) string {
	ends, known := map[string]string{
		"": "", MemoryLock: EndsWithProcess, NamedLock: EndsWithSession, CountLock: EndsWithAnswer, HoldLock: EndsWithAnswer,
		strategy.SharedLock: EndsAsLease, RedlockLock: EndsAsLease, MySQLLock: EndsAsLease, ZooKeeperLock: EndsAsLease,
		"reentrant": EndsLate, "mysql-lock-ownerless": EndsNever,
	}[name]
	if !known {
		return EndsByTTL
	}
	return ends
}

// Find returns the strategy of this name, if the shop can sell that way.
func Find(offers []Offer, name string) (Offer, error) {
	i := slices.IndexFunc(offers, func(o Offer) bool { return o.Name == name })
	switch {
	case i < 0:
		names := order.Map(offers, func(o Offer) string { return o.Name })
		return Offer{}, fmt.Errorf("%.80q is not one of %s", name, strings.Join(names, ", "))
	case !offers[i].Available:
		return Offer{}, fmt.Errorf("%s cannot be run: %s", name, offers[i].Reason)
	}
	return offers[i], nil
}

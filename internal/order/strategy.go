package order

import (
	"fmt"
	"slices"
	"strings"

	"example.com/shop/internal/stock"
)

// Names of locks that a Strategy may hold. The Service is given a Locker each, or
// for those that are wrong by themselves a PlainLocker.
const (
	NoLock        = ""
	MemoryLock    = "memory" // excludes the goroutines of one instance; those below exclude all instances
	RedisLock     = "redis"
	RedlockLock   = "redlock"
	MySQLLock     = "mysql"
	ZooKeeperLock = "zookeeper"
)

// Strategy is a way to sell under concurrency.
type Strategy struct {
	Name         string
	Lock         string    // held from before the stock is read until after the commit; see Lane
	ReleaseEarly bool      // it is given back before the commit instead
	Lane         bool      // buyers of one SKU stand in a lane: one lease and one commit serve many, and not each reads the stock
	Remembers    bool      // what is sold out is refused without asking, for a short while
	ReadFirst    bool      // read the level before the transaction, refuse if too low
	Take         stock.Way // how units are taken
	Promises     bool      // promises never to oversell, with any number of instances
	Lesson       string    // one sentence
}

// Strategies returns the table of all strategies, the default first.
func Strategies() []Strategy {
	return slices.Concat(rightStrategies(), wrongStrategies())
}

func rightStrategies() []Strategy {
	return []Strategy{
		{
			Name: "lanes", Lock: RedisLock, Lane: true, Remembers: true, ReadFirst: true, Take: stock.Fenced, Promises: true,
			Lesson: "As redis, but whoever has the lease sells to everyone in the line at once: one lease and one commit for hundreds of orders; what is sold out is remembered for a moment.",
		},
		{
			Name: "redis", Lock: RedisLock, ReadFirst: true, Take: stock.Fenced, Promises: true,
			Lesson: "A lease in Redis keeps the buyers of all instances in line; a fenced, guarded update catches whoever acts after losing it.",
		},
		{
			Name: "redlock", Lock: RedlockLock, ReadFirst: true, Take: stock.Conditional, Promises: true,
			Lesson: "A lease by majority of five Redis survives two of them; it has no fence to check, so what makes it correct is the guarded update.",
		},
		{
			Name: "mysql-lock", Lock: MySQLLock, ReadFirst: true, Take: stock.Fenced, Promises: true,
			Lesson: "A lease in a table of the database spares a second server; each costs two more transactions there, and waiters poll.",
		},
		{
			Name: "zookeeper", Lock: ZooKeeperLock, ReadFirst: true, Take: stock.Fenced, Promises: true,
			Lesson: "ZooKeeper keeps buyers in a line of nodes, wakes one at a time and numbers them, which is the fence; each lease is agreed on by its servers.",
		},
		{
			Name: "for-update", Lock: NoLock, Take: stock.ForUpdate, Promises: true,
			Lesson: "SELECT ... FOR UPDATE lets the database keep buyers in line, each with a connection and the row held while it thinks.",
		},
		{
			Name: "optimistic", Lock: NoLock, ReadFirst: true, Take: stock.Optimistic, Promises: true,
			Lesson: "Nobody waits: who finds the row changed since it was read starts over, which is cheap where buyers are few and dear where all want the same.",
		},
		{
			Name: "conditional", Lock: NoLock, Take: stock.Conditional, Promises: true,
			Lesson: "No lock at all: the database compares and subtracts in one statement. Correct, but every buyer fights for the row.",
		},
	}
}

// find returns the row of a table called name, or the default for an empty name.
func find(table []Strategy, name string) (Strategy, error) {
	if name == "" {
		return table[0], nil
	}
	i := slices.IndexFunc(table, func(s Strategy) bool { return s.Name == name })
	if i < 0 {
		var names []string
		for _, s := range table {
			names = append(names, s.Name)
		}
		return Strategy{}, fmt.Errorf("%w %.80q: want one of %s", ErrUnknownStrategy, name, strings.Join(names, ", "))
	}
	return table[i], nil
}

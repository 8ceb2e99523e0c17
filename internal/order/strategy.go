package order

import (
	"fmt"
	"slices"
	"strings"

	"example.com/shop/internal/stock"
)

// Names of locks that a Strategy may hold. The Service is given one Locker each.
const (
	NoLock     = ""
	MemoryLock = "memory" // excludes the goroutines of one instance
	RedisLock  = "redis"  // excludes all instances
)

// Strategy is a way to sell under concurrency.
type Strategy struct {
	Name      string
	Lock      string    // held from before the stock is read until after the commit
	ReadFirst bool      // read the level before the transaction, refuse if too low
	Take      stock.Way // how units are taken
	Promises  bool      // promises never to oversell, with any number of instances
	Lesson    string    // one sentence
}

// Strategies returns the table of all strategies, the default first.
func Strategies() []Strategy {
	return []Strategy{
		{
			Name: "redis", Lock: RedisLock, ReadFirst: true, Take: stock.Fenced, Promises: true,
			Lesson: "A lease in Redis keeps the buyers of all instances in line; a fenced, guarded update catches whoever acts after losing it.",
		},
		{
			Name: "conditional", Lock: NoLock, Take: stock.Conditional, Promises: true,
			Lesson: "No lock at all: the database compares and subtracts in one statement. Correct, but every buyer fights for the row.",
		},
		{
			Name: "none", Lock: NoLock, ReadFirst: true, Take: stock.Overwrite,
			Lesson: "Read, think, write: all who read before the first write sell the same units.",
		},
		{
			Name: "mutex", Lock: MemoryLock, ReadFirst: true, Take: stock.Overwrite,
			Lesson: "A lock inside the process: right with one instance, wrong with two, because each has its own.",
		},
	}
}

// strategy returns the row called name, or the default for an empty name.
func strategy(name string) (Strategy, error) {
	table := Strategies()
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

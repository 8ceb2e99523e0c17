package order

import "example.com/shop/internal/stock"

// wrongStrategies are those that oversell, each by one well-known mistake. None
// has a guard in its statement, which would hide it.
func wrongStrategies() []Strategy {
	return []Strategy{
		{
			Name: "none", Lock: NoLock, ReadFirst: true, Take: stock.Overwrite,
			Lesson: "Read, think, write: all who read before the first write sell the same units.",
		},
		{
			Name: "mutex", Lock: MemoryLock, ReadFirst: true, Take: stock.Overwrite,
			Lesson: "A lock inside the process: right with one instance, wrong with two, because each has its own.",
		},
		{
			Name: "setnx-expire", Lock: "setnx-expire", ReadFirst: true, Take: stock.Overwrite,
			Lesson: "SETNX, then EXPIRE: a process that dies between the two leaves a lock that never ends, and nobody sells that SKU again; SET with NX and PX is one step.",
		},
		{
			Name: "setex", Lock: "setex", ReadFirst: true, Take: stock.Overwrite,
			Lesson: "SETEX, or SET with an expiry and without NX, writes over whoever holds the lock: everybody gets it at once.",
		},
		{
			Name: "blind-del", Lock: "blind-del", ReadFirst: true, Take: stock.Overwrite,
			Lesson: "DEL without asking whose lock it is: a holder whose time ran out deletes the next one's lock and lets a third in.",
		},
		{
			Name: "get-then-del", Lock: "get-then-del", ReadFirst: true, Take: stock.Overwrite,
			Lesson: "GET, compare, then DEL: the lock can pass to somebody else between the two; a script that compares and deletes is one step.",
		},
		{
			Name: "release-before-commit", Lock: RedisLock, ReleaseEarly: true, ReadFirst: true, Take: stock.Overwrite,
			Lesson: "The right lock, given back before the COMMIT: the next buyer reads stock that is about to change.",
		},
		{
			Name: "short-lease", Lock: "short-lease", ReadFirst: true, Take: stock.Overwrite,
			Lesson: "A lease shorter than the work, without renewal or fence: the second buyer comes in while the first still writes, and nothing notices.",
		},
	}
}

package step

import (
	"slices"
	"strings"
)

// Lesson is a mistake that people make, a schedule in which it shows, and what there is to learn from it.
type Lesson struct {
	Name     string `json:"name"` // mostly of the strategy
	Title    string `json:"title"`
	Text     string `json:"text"` // what people do, and why it looks right
	Schedule string `json:"schedule"`

	// Before the schedule goes on after Ask acts, the reader is asked what will happen. Right is the index of the answer.
	Ask      int      `json:"ask"`
	Question string   `json:"question"`
	Options  []string `json:"options"`
	Right    int      `json:"right"`

	Why    string `json:"why"`    // it fails
	Remedy string `json:"remedy"` // a right strategy, for the same schedule
	Fix    string `json:"fix"`    // what that does instead

	wrong func(Event) bool // the event with which it goes wrong; nil for the write that sells one unit too many
}

// Lessons returns them in the order in which people make the mistakes.
func Lessons() []Lesson {
	return []Lesson{
		{
			Name: "none", Title: "No lock: read, compute, write back", Schedule: "none:Aba",
			Text:     "One unit is left. The shop reads the stock, checks it in the program, and saves what it computed. That is what an ORM makes easy, and with one buyer at a time it is right.",
			Ask:      6,
			Question: "A has read 1. B has bought the unit since. What does A's UPDATE do?",
			Options:  []string{"It fails: the row has changed since A read it", "It changes the row, and A gets the unit, too", "It waits for B"},
			Right:    1,
			Why:      "Both buyers read that one unit is left before either wrote. A's UPDATE saves what A computed from that old read: zero, where B's order had already made it zero. No statement failed, and the stock column looks right. Only the orders tell that the unit was sold twice.",
			Remedy:   "conditional",
			Fix:      "conditional lets the database compare and subtract in one statement, UPDATE ... WHERE available >= 1. In the same schedule A's UPDATE matches no row, and A's order is refused as sold out.",
		},
		{
			Name: "mutex", Title: "A lock in the process", Schedule: "mutex:AAba",
			Text:     "So there has to be a lock. sync.Mutex, synchronized, a channel with one worker: it passes every test on a laptop, where one process runs. A and B are served by two.",
			Ask:      2,
			Question: "A holds the mutex of instance 1 and has read. B asks instance 2. What happens?",
			Options:  []string{"B waits until A unlocks", "B gets an error", "B gets the mutex at once"},
			Right:    2,
			Why:      "A holds the mutex of instance 1, B that of instance 2. They are two mutexes: each excludes the goroutines of its own process and nothing else. What follows is what happens without any lock.",
			Remedy:   "redis",
			Fix:      "redis keeps the lock where all instances see it: B is refused while A has the lock, and reads only after A has committed and released.",
		},
		{
			Name: "setnx-expire", Title: "SETNX, then EXPIRE", Schedule: "setnx-expire:Axab",
			Text:     "The lock goes to Redis. SETNX takes it, EXPIRE ends it some time later if its holder dies: two commands, one after the other.",
			Ask:      2,
			Question: "A's process has died between the two commands. When does B get the lock?",
			Options:  []string{"When the TTL is over", "Never", "At once: Redis sees that the connection is gone"},
			Right:    1,
			Why:      "A's process died after SETNX and before EXPIRE. The key stays and never expires: no TTL was ever set. Every buyer of this SKU is turned away from now on, until an operator deletes the key.",
			Remedy:   "redis",
			Fix:      "redis sets key and TTL in one step. Wherever the process dies, B gets the unit when the TTL is over.",
			wrong:    func(e Event) bool { return e.Kind == Schedule && e.Text == "dies" },
		},
		{
			Name: "setex", Title: "SETEX: one command, and no lock", Schedule: "setex:AAba",
			Text:     "Value and TTL in one command: that is SETEX, PSETEX, or SET with an expiry. Redis answers OK.",
			Ask:      2,
			Question: "A has the lock and has read. B sends the same command. What does Redis answer?",
			Options:  []string{"nil: the key exists", "OK", "An error"},
			Right:    1,
			Why:      "SETEX writes whether the key exists or not. B's command overwrote A's lock, and the OK it got says only that something was written. Both hold the lock now, and both have read that one unit is left.",
			Remedy:   "redis",
			Fix:      "redis takes the key only if it does not exist (SET with NX and PX, here in a script that also issues a fencing token). B is refused and waits.",
		},
		{
			Name: "blind-del", Title: "DEL without checking the owner", Schedule: "blind-del*2:AAAAAtaBBacb",
			Text:     "SET key owner NX PX ttl takes the lock as it should. DEL gives it back. Two units are left, and three buyers want them. A is slow: its lock has run out before it sends its DEL.",
			Ask:      8,
			Question: "B holds the lock now. A sends its DEL. Whose lock is deleted?",
			Options:  []string{"A's, which has expired: nothing happens", "B's", "Redis refuses: A is not the owner"},
			Right:    1,
			Why:      "A's lock had expired, and B holds the next one. A's DEL does not check the owner and deletes B's lock. C finds no lock and starts while B is at work: both have read the same stock.",
			Remedy:   "redis",
			Fix:      "redis compares the owner and deletes in one script: a key of another owner stays. B's lock stands, and C waits for B.",
			wrong:    isDel,
		},
		{
			Name: "get-then-del", Title: "GET, compare, DEL", Schedule: "get-then-del*2:AAAAAAtaBBacb",
			Text:     "So the lock has an owner. To release it, the holder first asks Redis: GET, compare with its own name, and only then DEL.",
			Ask:      9,
			Question: "Redis has told A that the lock is A's. Then it ran out, and B took it. A sends its DEL. What is deleted?",
			Options:  []string{"B's lock", "Nothing: A has checked", "A's own lock"},
			Right:    0,
			Why:      "A asked Redis for the owner of the lock, and the answer was A. That was true at the time. Then the lock expired, B took it, and A sent its DEL, relying on an answer that was out of date. It deleted B's lock, and C starts while B is at work.",
			Remedy:   "redis",
			Fix:      "redis compares the owner and deletes in one script; the lock cannot change hands in between, so that the schedule has no place for that here. B's lock stands, and C waits for B.",
			wrong:    isDel,
		},
		{
			Name: "short-lease", Title: "A lease that runs out, and the fence", Schedule: "short-lease:AAtaba",
			Text:     "Lock and unlock are right now. But a lock with a TTL is a lease: it ends by the clock of its store, whether or not its holder has finished. A garbage collection, a closed laptop, a migrated virtual machine: A stands still for longer than that.",
			Ask:      10,
			Question: "B has bought the unit under a lock of its own. A wakes up and goes on. What stops its UPDATE?",
			Options:  []string{"Redis: A's lock has expired", "Nothing", "A's process: it notices that its lock is over"},
			Right:    1,
			Why:      "A stood still for longer than its lock's TTL. The lock kept its promise and let B in. A does not notice when it goes on, and the row that it writes to knows nothing of locks.",
			Remedy:   "redis",
			Fix:      "Each lease of redis has a number that is higher than the one before: the fence. The UPDATE demands it, WHERE fence < ?, and writes it. A's number is lower than the one that B left in the row, so A's statement matches no row. A's client repeats the request, and is refused as sold out. (Here available >= 1 would have refused A as well: nothing is left. If a unit were left, it would not: the fence is for all that A has decided by its old read, such as a price or a limit.)",
		},
		{
			Name: "release-before-commit", Title: "Released before the COMMIT", Schedule: "release-before-commit:AAAAAbab",
			Text:     "A good lock, around the wrong thing: the transaction was opened further out, in a middleware, a decorator or an annotation, and commits after the lock was given back.",
			Ask:      5,
			Question: "A has written and given back the lock, and its COMMIT is next. B takes the lock and reads. What does B read?",
			Options:  []string{"0: A has sold the unit", "1", "Nothing: B waits for A's COMMIT"},
			Right:    1,
			Why:      "A released the lock before its COMMIT. B took the lock, as it should, and read the stock: the old one, because other transactions cannot see yet what A wrote. B was right about the lock and wrong about the stock.",
			Remedy:   "redis",
			Fix:      "redis, the strategy, uses the same lock and releases it after the COMMIT. B waits, and reads what A has left.",
			wrong:    func(e Event) bool { return e.Actor == "B" && e.Kind == Step && e.Text == "read" },
		},
		{
			Name: "read-before-lock", Title: "Read first, then locked", Schedule: "read-before-lock:Aba",
			Text:     "The lock is released after the COMMIT now. But the stock was read before it was taken: by a cache, by the page that the buyer came from, or by a transaction that had begun outside and keeps showing what it saw first.",
			Ask:      9,
			Question: "A has read 1. B has bought the unit since, under the lock. A takes the lock, which is free. What does A's UPDATE write?",
			Options:  []string{"0, computed from what A read before", "Nothing: the lock tells A that the stock has changed", "Nothing: the UPDATE fails"},
			Right:    0,
			Why:      "Each held the lock when it wrote, and neither entered while the other held it. But what A knew was older than A's lock. A lock protects what is read and written under it, and nothing that was read before.",
			Remedy:   "redis",
			Fix:      "redis reads after it has the lock, and its UPDATE is guarded besides. A in the same schedule does not wait, takes the lock after B, reads 0, and is refused as sold out.",
		},
		{
			Name: "slow-work", Title: "Work longer than the TTL, and the watchdog", Schedule: "short-lease:AAwaba",
			Text:     "No process is paused here: A simply works for longer than the lock's TTL. A call to a warehouse, a slow query, a large basket. What should the TTL be?",
			Ask:      3,
			Question: "A is at work, and three TTLs have passed. No renewal was sent. B asks for it. What happens?",
			Options:  []string{"B waits: A is still working", "B gets the lock", "Redis ends A's work"},
			Right:    1,
			Why:      "The TTL was a guess of how long the work takes, and the guess was wrong. The lock ran out while its holder still worked, B took it, and A wrote as if nothing had happened. A longer TTL only moves the guess, and makes everyone wait longer after a crash.",
			Remedy:   "redis",
			Fix:      "redis renews its lease while its holder works, each third of the TTL: the watchdog. B waits for as long as A works. If A's process dies, no renewal is sent, and B has the lock one TTL later. For a holder that stands still there is the fence of lesson 7.",
		},
		{
			Name: "try-once", Title: "Try once, or skip: a scheduled job, and a buyer", Schedule: "try-once*2:Abca",
			Text:     "A job is due on three instances and should run on one: each tries the lock once, the first runs the job, and the others skip it. The shop does the same, so that no buyer waits: if the lock is taken, the answer is \"sold out\". Two units are left, and three buyers want them.",
			Ask:      1,
			Question: "A holds the lock. B and C try it once. How many of the two units are sold?",
			Options:  []string{"One", "Two", "None"},
			Right:    0,
			Why:      "The lock was taken, and the shop made \"sold out\" of that. B and C were turned away while a unit was there, and they do not ask again. Nothing was oversold, and the shop has lost a sale. The same happens to the last unit if the holder dies.",
			Remedy:   "redis",
			Fix:      "redis lets buyers wait in line for a limited time, and says 503, try again, where that passes: only the stock says sold out. For a job skipping is right, since its next run does what this one left out: if the instance that runs it dies, its lock ends with the TTL, and another instance has the next run.",
			wrong:    func(e Event) bool { return e.Actor == "B" && e.Kind == HTTP && strings.HasPrefix(e.Text, "409") },
		},
		{
			Name: "reentrant", Title: "Locked out by oneself", Schedule: "reentrant:ab",
			Text:     "A holds the lock and calls a function. That function locks too, to be sure. With synchronized in Java that works: its owner may take it again.",
			Ask:      1,
			Question: "A holds the lock, and a function that A calls sends SET NX for the same key. What does Redis answer?",
			Options:  []string{"OK: A is the owner", "nil: the key exists", "An error: a deadlock"},
			Right:    1,
			Why:      "SET NX asks whether the key exists, not whose it is. A waits for a lock that A itself holds, and can only be released after the wait. Everybody else waits as well.",
			Remedy:   "redis",
			Fix:      "redis takes the lock once, in one place, and the functions below get the lease as a parameter: a function that is given the lease need not lock. That is also visible in the code, where a count in Redis is not.",
			wrong:    func(e Event) bool { return e.Actor == "A" && e.Kind == Redis && e.Answer == "nil" },
		},
		{
			Name: "reentrant-count", Title: "A count of locks, in several commands", Schedule: "reentrant-count:ABBBBBBBBab",
			Text:     "So the lock counts: a hash with a field for its owner, which goes up with each lock and down with each unlock. EXISTS, HEXISTS, HINCRBY, PEXPIRE, one after the other.",
			Ask:      9,
			Question: "A has seen that there is no key. Then B took the lock, and has read. A sends HINCRBY, to count itself in. What does Redis do?",
			Options:  []string{"It refuses: the key is B's", "It adds A's field to B's hash: A has the lock, too", "It overwrites B's field"},
			Right:    1,
			Why:      "A asked, and acted on the answer later. HINCRBY does not ask whose hash it is: A's count stands beside B's, and both believe that they hold the lock. A process that dies before PEXPIRE leaves a lock without end besides, and a late unlock counts below zero and deletes the next owner's.",
			Remedy:   "redis",
			Fix:      "Asking and taking are one step in redis: a script. A reentrant lock in Redis needs the same, all four commands in one script. Better is not to need one: pass the lease on.",
			wrong:    func(e Event) bool { return e.Actor == "A" && strings.HasPrefix(e.Text, "HINCRBY ") },
		},
		{
			Name: "mysql-lock-ownerless", Title: "A row as a lock", Schedule: "mysql-lock-ownerless:Axab",
			Text:     "There is a database already: a table of locks, in which the name is the primary key. INSERT takes the lock, for only one can; DELETE gives it back.",
			Ask:      2,
			Question: "A's process has died after its INSERT. When does B get the lock?",
			Options:  []string{"When the database notices that A's connection is gone", "When the TTL is over", "Never"},
			Right:    2,
			Why:      "The row says that the lock is taken, not by whom nor until when. A's INSERT was committed, so that its row outlives A. A job that deletes old rows does not help: it cannot tell a dead holder from a slow one, and a slow holder's DELETE then takes the lock of the next.",
			Remedy:   "redis",
			Fix:      "A lock in a table needs what redis has: an owner, who alone may delete the row; an end, after which another may take it; a renewal, while its holder works; and a fence. mysql-lock is that, in three statements. ZooKeeper has the end built in: its node is ephemeral and goes with its holder's session, and a watch wakes the next in line.",
			wrong:    func(e Event) bool { return e.Kind == Schedule && e.Text == "dies" },
		},
		{
			Name: "redlock-unguarded", Title: "Redlock, and whether you need a lock at all", Schedule: "redlock-unguarded:AAtaba",
			Text:     "One Redis can fail, so there are five: a client that gets three of them has the lock. Two may be down, and it still sells. But the TTL runs by the clocks of five servers: one that jumps ahead, or a node that restarts without its memory, ends a lock early.",
			Ask:      10,
			Question: "A's lock has run out on three of five nodes. B took it there and bought the unit. A goes on. What stops A's UPDATE?",
			Options:  []string{"The majority: A has no longer three nodes", "Its fence is too low", "Nothing"},
			Right:    2,
			Why:      "Five servers make it less likely that the lock is lost with one of them. They do not make A notice, and Redlock has no number that rises with each holder, so that the row cannot tell A from B.",
			Remedy:   "redlock",
			Fix:      "redlock has a guard in its statement, WHERE available >= 1: an order that comes too late sells nothing. That guard alone, without any lock, is the strategy conditional, and for one row in one database it is all you need. A lock keeps order in a crowd; the statement keeps the stock.",
		},
	}
}

// LessonOf returns the lesson of a wrong strategy.
func LessonOf(strategy string) (Lesson, bool) {
	all := Lessons()
	i := slices.IndexFunc(all, func(l Lesson) bool { return l.strategy() == strategy })
	if i < 0 {
		return Lesson{}, false
	}
	return all[i], true
}

// strategy is the name of the wrong one.
func (l Lesson) strategy() string { return l.Schedule[:strings.IndexAny(l.Schedule, "*:")] }

// with is the name of the lesson's schedule with another strategy.
func (l Lesson) with(strategy string) string { return strategy + l.Schedule[len(l.strategy()):] }

func isDel(e Event) bool {
	return e.Actor == "A" && e.Kind == Redis && strings.HasPrefix(e.Text, "DEL ")
}

// firstOversold returns the index of the write that sold more than was there; -1 if none did.
func firstOversold(events []Event, units int64) int {
	var sold int64
	for i, e := range events {
		if e.Kind == SQL && strings.HasPrefix(e.Text, "UPDATE skus") && e.Answer == "1 row" {
			if sold++; sold > units {
				return i
			}
		}
	}
	return -1
}

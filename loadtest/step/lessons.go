package step

import (
	"slices"
	"strings"
)

// Lesson is a mistake that people make, a schedule in which it shows, and what there is to learn from it.
type Lesson struct {
	Name     string `json:"name"` // of the strategy
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
			Ask:      5,
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
			Name: "setnx-expire", Title: "SETNX, then EXPIRE", Schedule: "setnx-expire:Axabb",
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
			Name: "blind-del", Title: "DEL, whoever holds it", Schedule: "blind-del*2:AAAAAtaBBacb",
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
			Text:     "So the lock has an owner. Whoever gives it back asks Redis first: GET, compare with its own name, and only then DEL.",
			Ask:      9,
			Question: "Redis has told A that the lock is A's. Then it ran out, and B took it. A sends its DEL. What is deleted?",
			Options:  []string{"B's lock", "Nothing: A has checked", "A's own lock"},
			Right:    0,
			Why:      "A asked Redis for the owner of the lock, and the answer was A. That was true at the time. Then the lock expired, B took it, and A sent its DEL on the strength of an answer that was out of date. It deleted B's lock, and C starts while B is at work.",
			Remedy:   "redis",
			Fix:      "redis compares the owner and deletes in one script; the lock cannot change hands in between. B's lock stands, and C waits for B.",
			wrong:    isDel,
		},
		{
			Name: "short-lease", Title: "A lease that runs out, and the fence", Schedule: "short-lease:AAtaba",
			Text:     "Lock and unlock are right now. But a lock with a TTL is a lease: it ends by the clock of its store, whether or not its holder has finished. A garbage collection, a closed laptop, a migrated virtual machine: A stands still for longer than that.",
			Ask:      9,
			Question: "B has bought the unit under a lock of its own. A wakes up and goes on. What stops its UPDATE?",
			Options:  []string{"Redis: A's lock has expired", "Nothing", "A's process: it notices that its lock is over"},
			Right:    1,
			Why:      "A stood still for longer than its lock's TTL. The lock kept its promise and let B in. A does not notice when it goes on, and the row that it writes to knows nothing of locks.",
			Remedy:   "redis",
			Fix:      "Each lease of redis has a number that is higher than the one before: the fence. The UPDATE demands it, WHERE fence < ?, and writes it. A's number is lower than the one that B left in the row, so A's statement matches no row, whatever A believes; A tries again and is refused as sold out.",
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
	}
}

// LessonOf returns the lesson of a wrong strategy.
func LessonOf(strategy string) (Lesson, bool) {
	all := Lessons()
	i := slices.IndexFunc(all, func(l Lesson) bool { return l.Name == strategy })
	if i < 0 {
		return Lesson{}, false
	}
	return all[i], true
}

// with is the name of the lesson's schedule with another strategy.
func (l Lesson) with(strategy string) string {
	return strategy + strings.TrimPrefix(l.Schedule, l.Name)
}

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

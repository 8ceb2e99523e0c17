package steps

import "strings"

// lesson is what to say about a play that failed.
type lesson struct {
	why, remedy string
	by          string           // a right strategy, which the remedy is about; empty: the scenario's
	wrong       func(Event) bool // where it went wrong; nil: where one unit too many was sold
}

// lessons is the table of them, by strategy, for the scenario that each fails.
func lessons() map[string]lesson {
	return map[string]lesson{
		"none": {
			why:    "Both buyers read that one unit is left before either wrote. A's UPDATE saves what it reckoned from that old read: zero, where B's order had already made it zero. No statement failed, and the stock column looks right. Only the orders tell that the unit was sold twice.",
			remedy: "conditional lets the database compare and subtract in one statement, UPDATE ... WHERE available >= 1. In the same schedule A's UPDATE matches no row, and A is told that it is sold out.",
		},
		"mutex": {
			why:    "A holds the mutex of instance 1, B that of instance 2. They are two mutexes: each excludes the goroutines of its own process and nobody else. What follows is what happens without any lock.",
			by:     "redis",
			remedy: "redis keeps the lock where all instances see it: B's command is told that somebody else has the lock, and B reads only after A has committed and released.",
		},
		"setex": {
			why:    "SETEX writes, whether the key is there or not. B's command overwrote A's lock, and the OK it got says only that something was written. Both hold the lock now, both have read that one unit is left.",
			by:     "redis",
			remedy: "redis takes the key only where it is not there (SET with NX and PX, here in a script that mints a fence, too). B is told no, and waits.",
		},
		"setnx-expire": {
			why:    "A's process died after SETNX and before EXPIRE. The key stays, and has no end: a TTL that was never set does not run out. Every buyer of this SKU is turned away from now on, until a person deletes the key.",
			remedy: "redis sets key and TTL in one step. The process may die wherever it likes: B gets the unit when the TTL has run out.",
			wrong:  func(e Event) bool { return strings.HasPrefix(e.Text, "process killed") },
		},
		"short-lease": {
			why:    "A's process stood still for longer than its lock lived: a long garbage collection, a laptop's lid, a migrated machine. The lock did what it promises and let B in. A knows nothing of that when it goes on, and nothing that it writes to knows of locks.",
			remedy: "redis knows when its lease is over: what A does under it ends with it, and A reads the clock again before it commits. Where that comes too late, the fence helps: each lease has a higher number than the one before, and the UPDATE asks for it, WHERE fence < ?. A is refused, asks again, and is told that it is sold out.",
		},
		"release-before-commit": {
			why:    "A gave the lock back before its COMMIT. B took the lock, as it should, and read the stock: the old one, because nothing that A wrote was there for others to see. B was right about the lock and wrong about the stock.",
			remedy: "redis, the strategy, uses the same lock and releases it after the COMMIT. B waits, and reads what A has left.",
			wrong:  func(e Event) bool { return e.Actor == B && e.Kind == Step && e.Text == "read" },
		},
		"blind-del": {
			why:    "A's lock had run out, and B has it. A's DEL does not ask whose the key is, and deletes B's. The next order finds no lock and walks in while B works: both have read the same stock.",
			remedy: "redis compares and deletes in one script: where the key is somebody else's, it deletes nothing. B's lock stands, and the next order waits for B.",
			wrong:  isDel,
		},
		"get-then-del": {
			why:    "A asked whose lock it is, and was told: yours. That was true when it was said. Then A stood still, the lock ran out, B took it, and A sent its DEL, on the strength of an answer that had grown old. It deleted B's lock, and the next order walks in while B works.",
			remedy: "redis compares and deletes in one script, with no moment between the two in which the lock could pass on. B's lock stands, and the next order waits for B.",
			wrong:  isDel,
		},
	}
}

func isDel(e Event) bool {
	return e.Actor == A && e.Kind == Redis && strings.HasPrefix(e.Text, "DEL ")
}

// elsewhere is said where a wrong strategy fails in a scenario that is not its own.
const elsewhere = "This is not the mistake that it is known for. It writes back what it reckoned from an earlier read, without a guard in the statement, so that whoever gets past its lock sells the same unit again."

// explain says where a play that failed went wrong, why, and what would help.
func explain(how Strategy, in Scenario, events []Event) (wrong int, why, remedy string) {
	wrong = soldTooMuch(events, in.stock)
	l, known := lessons()[how.Name]
	if !known || Failures()[how.Name] != in.Name {
		return wrong, elsewhere, in.remedy + " passes in the same schedule."
	}
	for i, e := range events {
		if l.wrong != nil && l.wrong(e) {
			return i, l.why, l.remedy
		}
	}
	return wrong, l.why, l.remedy
}

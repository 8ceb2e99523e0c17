package step

import (
	"slices"
	"strings"
)

// Mistake is a wrong strategy and what there is to learn from it.
type Mistake struct {
	Strategy string
	By       string // a right strategy to compare with
	Scenario string // that it fails
	StopAt   string // where A stops there; empty for the scenario's usual point
	Why      string // it fails
	Remedy   string // what a right strategy does instead

	// Wrong reports whether an event is the one with which it goes wrong; nil for the write that sells one unit too
	// many.
	Wrong func(Event) bool
}

// Mistakes returns the table of all, in the order in which people make them.
func Mistakes() []Mistake {
	return []Mistake{
		{
			Strategy: "none", By: "conditional", Scenario: "lost-update",
			Why:    "Both buyers read that one unit is left before either wrote. A's UPDATE saves what A computed from that old read: zero, where B's order had already made it zero. No statement failed, and the stock column looks right. Only the orders tell that the unit was sold twice.",
			Remedy: "conditional lets the database compare and subtract in one statement, UPDATE ... WHERE available >= 1. In the same schedule A's UPDATE matches no row, and A's order is refused as sold out.",
		},
		{
			Strategy: "mutex", By: "redis", Scenario: "lost-update",
			Why:    "A holds the mutex of instance 1, B that of instance 2. They are two mutexes: each excludes the goroutines of its own process and nothing else. What follows is what happens without any lock.",
			Remedy: "redis keeps the lock where all instances see it: B is refused while A has the lock, and reads only after A has committed and released.",
		},
		{
			Strategy: "setnx-expire", By: "redis", Scenario: "crash", StopAt: halfLocked,
			Why:    "A's process died after SETNX and before EXPIRE. The key stays and never expires: no TTL was ever set. Every buyer of this SKU is turned away from now on, until an operator deletes the key.",
			Remedy: "redis sets key and TTL in one step. Wherever the process dies, B gets the unit when the TTL is over.",
			Wrong:  func(e Event) bool { return strings.HasPrefix(e.Text, "process killed") },
		},
		{
			Strategy: "setex", By: "redis", Scenario: "lost-update",
			Why:    "SETEX writes whether the key exists or not. B's command overwrote A's lock, and the OK it got says only that something was written. Both hold the lock now, and both have read that one unit is left.",
			Remedy: "redis takes the key only if it does not exist (SET with NX and PX, here in a script that also issues a fencing token). B is refused and waits.",
		},
		{
			Strategy: "blind-del", By: "redis", Scenario: "late-release", StopAt: halfReleased, Wrong: isDel,
			Why:    "A's lock had expired, and B holds the next one. A's DEL does not check the owner and deletes B's lock. The next order finds no lock and starts while B is at work: both have read the same stock.",
			Remedy: "redis compares the owner and deletes in one script: a key of another owner stays. B's lock stands, and the next order waits for B.",
		},
		{
			Strategy: "get-then-del", By: "redis", Scenario: "late-release", StopAt: halfReleased, Wrong: isDel,
			Why:    "A asked Redis for the owner of the lock, and the answer was A. That was true at the time. Then A's process stood still, the lock expired, B took it, and A sent its DEL on the strength of an answer that was out of date. It deleted B's lock, and the next order starts while B is at work.",
			Remedy: "redis compares the owner and deletes in one script; the lock cannot change hands in between. B's lock stands, and the next order waits for B.",
		},
		{
			Strategy: "short-lease", By: "redis", Scenario: "pause",
			Why:    "A's process stood still for longer than its lock's TTL: a long garbage collection, a closed laptop, a migrated virtual machine. The lock kept its promise and let B in. A does not notice when it goes on, and the row that it writes to knows nothing of locks.",
			Remedy: "redis notices when its lease is over: the context of A's work ends with it, and A reads the clock again before it commits. Where that is too late, the fence helps: each lease has a higher number than the one before, and the UPDATE demands it, WHERE fence < ?. A's statement matches no row; A tries again and is refused as sold out.",
		},
		{
			Strategy: "release-before-commit", By: "redis", Scenario: "early-release",
			Why:    "A released the lock before its COMMIT. B took the lock, as it should, and read the stock: the old one, because other transactions cannot see yet what A wrote. B was right about the lock and wrong about the stock.",
			Remedy: "redis, the strategy, uses the same lock and releases it after the COMMIT. B waits, and reads what A has left.",
			Wrong:  func(e Event) bool { return e.Actor == B && e.Kind == Step && e.Text == "read" },
		},
	}
}

// MistakeOf returns the mistake of a wrong strategy.
func MistakeOf(strategy string) (Mistake, bool) {
	for _, m := range Mistakes() {
		if m.Strategy == strategy {
			return m, true
		}
	}
	return Mistake{}, false
}

func isDel(e Event) bool {
	return e.Actor == A && e.Kind == Redis && strings.HasPrefix(e.Text, "DEL ")
}

// fails reports whether a strategy is known for failing a scenario.
func fails(strategy, scenario string) bool {
	m, _ := MistakeOf(strategy)
	return m.Scenario == scenario
}

// explain says where a play that failed went wrong, why, and what would help.
func explain(strategy string, in Scenario, events []Event) (wrong int, why, remedy string) {
	wrong = firstOversold(events, in.stock)
	m, _ := MistakeOf(strategy)
	if m.Scenario != in.Name {
		return wrong, "This is not the mistake that the strategy is known for. It writes what it computed from an earlier read, without a guard in the statement, so that any request that gets past its lock sells the same unit again.",
			"The right strategies pass in the same schedule."
	}
	if m.Wrong != nil {
		wrong = slices.IndexFunc(events, m.Wrong)
	}
	return wrong, m.Why, m.Remedy
}

// firstOversold returns the index of the write that sold more than was there; -1 if none did.
func firstOversold(events []Event, stock int64) int {
	var sold int64
	for i, e := range events {
		if e.Kind == SQL && strings.HasPrefix(e.Text, "UPDATE skus") && e.Answer == "1 row" {
			if sold++; sold > stock {
				return i
			}
		}
	}
	return -1
}

// Package step plays two buyers against each other by a schedule: the same requests meet at the same points every time,
// and so end the same way every time. A race shows that a shop oversells; a play shows why.
//
// A buys from instance 1, a process of its own that is really paused, continued and killed; B from instance 2, in this
// process. Both are real shops in teaching mode on one database and one Redis. The shops record what each request does:
// its steps, its Redis commands and its SQL.
//
// The tables Scenarios and Mistakes say what can be played. Adding a row to them is all that a new scenario or a new
// mistake needs.
//
// What is promised:
//
//   - A strategy ends in the scenario of its mistake the same way every time: the wrong one fails, the right ones pass.
//   - Nothing waits for a length of time to pass where something can be waited for, and every wait has a bound.
//   - No process outlives the Player, nor this process, however that ends.
package step

import (
	"context"
	"slices"
	"strings"
	"time"

	"example.com/shop/loadtest/shopclient"
)

// Scenario is a schedule for two buyers.
type Scenario struct {
	Name  string
	Title string
	Story string // what happens, in a few sentences

	stock    int64
	pace     pace
	schedule []move
	needs    string // of a strategy: a lock, a lease, or a lease that it has until after COMMIT
}

// Scenarios returns the table of all.
func Scenarios() []Scenario {
	return []Scenario{
		{
			Name: "lost-update", Title: "A stops between reading and writing",
			Story: "One unit is left. A reads the stock and stops. B orders the same unit. A goes on and writes what it computed from its old read.",
			stock: 1, pace: calm,
			schedule: []move{
				order(A, hasRead),
				order(B, toTheEnd), until(B, "is done or waits for A", doneOrWaits),
				resume(A),
			},
		},
		{
			Name: "crash", Title: "A's process dies while it takes the lock",
			Story: "One unit is left. A's process is killed just after it took the lock, or halfway. B wants the unit and must get it once the lock has expired.",
			stock: 1, pace: quick, needs: "lock",
			schedule: []move{
				order(A, hasLock), kill,
				order(B, toTheEnd),
			},
		},
		{
			Name: "pause", Title: "A's process is paused for longer than its lock's TTL",
			Story: "One unit is left. A reads the stock, and its process is paused until its lock has expired. B orders. A's process continues, and A writes.",
			stock: 1, pace: quick, needs: "lease",
			schedule: []move{
				order(A, hasRead), pause,
				order(B, toTheEnd), until(B, "is done", done),
				unpause, resume(A),
			},
		},
		{
			Name: "early-release", Title: "A stops before its COMMIT",
			Story: "One unit is left. A has written and not yet committed. B reads the stock, unless a lock keeps it waiting. A commits.",
			stock: 1, pace: calm,
			schedule: []move{
				order(A, hasWritten),
				order(B, toTheEnd), until(B, "has read the stock or waits for A", readOrWaits),
				resume(A),
			},
		},
		{
			Name: "late-release", Title: "A releases its lock after it has expired",
			Story: "Two units are left. A sells one and is paused before it releases its lock. B takes the lock and reads that one is left. A releases a lock: whose? A wants the other unit, too.",
			stock: 2, pace: quick, needs: "late lease",
			schedule: []move{
				order(A, hasCommitted), pause,
				order(B, hasRead),
				unpause, resume(A), until(A, "has an answer", done),
				order(A, toTheEnd), until(A, "is done or waits for B", doneOrWaits),
				resume(B),
			},
		},
	}
}

// pace is how long locks live in a pair of shops, and how long buyers wait.
type pace struct{ ttl, wait time.Duration }

var (
	// quick is for plays in which a lock has to expire.
	quick = pace{ttl: time.Second, wait: 5 * time.Second} //nolint:gochecknoglobals // a constant
	// calm is for plays in which no lock may expire, however slow the machine is. ZooKeeper's sessions, three times as
	// long, are at most 40 s.
	calm = pace{ttl: 12 * time.Second, wait: 30 * time.Second} //nolint:gochecknoglobals // a constant
)

// Excuse returns why a scenario cannot be played with a strategy; empty if it can.
func Excuse(strategy shopclient.Strategy, in Scenario) string {
	mistake, _ := MistakeOf(strategy.Name)
	switch {
	case !strategy.Available:
		return strategy.Reason
	case in.needs != "" && strategy.Lock == "":
		return "it takes no lock"
	case in.needs != "" && in.needs != "lock" && strategy.Lock == "memory":
		return "its lock ends with the process, not by time"
	case in.needs == "late lease" && mistake.Scenario == "early-release":
		return "it has released its lock by then"
	}
	return ""
}

// scenario returns the one of this name.
func scenario(name string) (Scenario, bool) {
	for _, in := range Scenarios() {
		if in.Name == name {
			return in, true
		}
	}
	return Scenario{}, false
}

// move is one entry of a schedule.
type move func(context.Context, *stage) error

// How far a request goes before it stops.
const (
	toTheEnd     = ""
	hasLock      = "stopped: has the lock"
	halfLocked   = "stopped before PEXPIRE"
	hasRead      = "stopped: has read, has not written"
	hasLockedRow = "stopped: has locked the row and read it, has not written"
	hasWritten   = "stopped before COMMIT"
	hasCommitted = "stopped: has committed, has not released"
	halfReleased = "stopped before DEL"
)

// isAt reports whether a request has come there: by the step that comes next.
func isAt(there string, p progress) bool {
	kind, text, _ := strings.Cut(p.next, " ")
	committed := slices.ContainsFunc(p.events, func(e shopclient.TapeEvent) bool { return e.Text == "COMMIT" })
	return map[string]bool{
		hasLock:      kind == SQL,
		halfLocked:   strings.HasPrefix(text, "PEXPIRE "),
		hasRead:      text == "BEGIN",
		hasLockedRow: strings.HasPrefix(text, "UPDATE "),
		hasWritten:   text == "COMMIT",
		hasCommitted: kind != SQL && committed,
		halfReleased: strings.HasPrefix(text, "DEL "),
	}[there]
}

// order lets a buyer ask for one unit, up to where it is to stop. Where the mistake of a strategy is elsewhere, A stops
// there.
func order(actor, to string) move {
	return func(ctx context.Context, s *stage) error {
		if actor == A && to != toTheEnd {
			to = s.stopOf(to)
		}
		r := s.order(ctx, actor, to != toTheEnd)
		if to == toTheEnd {
			return nil
		}
		return r.stepTo(ctx, to, func(p progress) bool { return isAt(to, p) })
	}
}

// until waits for the latest request of a buyer.
func until(actor, what string, is func(progress) bool) move {
	return func(ctx context.Context, s *stage) error { return s.latest[actor].until(ctx, what, is) }
}

// resume lets a buyer's request go on that was stopped.
func resume(actor string) move {
	return func(ctx context.Context, s *stage) error { return s.latest[actor].resume(ctx) }
}

func kill(_ context.Context, s *stage) error {
	s.log.add(A, Schedule, "process killed (SIGKILL)")
	return s.pair.kill()
}

func pause(_ context.Context, s *stage) error {
	s.log.add(A, Schedule, "process paused (SIGSTOP)")
	return pauseProcess(s.pair.first.Process)
}

func unpause(_ context.Context, s *stage) error {
	s.log.add(A, Schedule, "process goes on (SIGCONT)")
	return continueProcess(s.pair.first.Process)
}

// progress is what a request has done so far, in all its tries.
type progress struct {
	events []shopclient.TapeEvent
	next   string // the step that it has stopped before; empty if it has not stopped
	done   bool
}

func done(p progress) bool { return p.done }

// doneOrWaits: nothing more happens to the request before another one goes on.
func doneOrWaits(p progress) bool { return p.done || slices.ContainsFunc(p.events, waits) }

func readOrWaits(p progress) bool {
	return doneOrWaits(p) || slices.ContainsFunc(p.events, func(e shopclient.TapeEvent) bool { return e.Kind == Step && e.Text == "read" })
}

// waits: a lock was refused, or a row is asked for that another transaction has locked.
func waits(e shopclient.TapeEvent) bool {
	switch e.Kind {
	case Redis:
		return strings.HasPrefix(e.Text, "SET") && (e.Answer == "nil" || e.Answer == "0")
	case SQL:
		return strings.Contains(e.Text, "FROM skus") && strings.HasSuffix(e.Text, "FOR UPDATE")
	}
	return e.Text == "lock-contended"
}

package steps

import (
	"context"
	"slices"
)

// Scenario is a schedule that two buyers keep to.
type Scenario struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Story string `json:"story"` // what happens, in a sentence or two

	stock  int64
	pace   pace
	play   func(context.Context, *stage) error
	excuse func(Strategy) string // why it does not apply; empty if it does
	remedy string                // a right strategy to compare with
}

// Scenarios returns the table of all.
func Scenarios() []Scenario {
	return []Scenario{
		{
			Name: "lost-update", Title: "A stops between reading and writing",
			Story: "One unit is left. A reads that, and stops. B orders the same unit. A goes on and writes what it reckoned.",
			stock: 1, pace: calm, play: lostUpdate, excuse: none, remedy: "conditional",
		},
		{
			Name: "crash", Title: "A's process dies while it takes the lock",
			Story: "One unit is left. A's process is killed just after it took the lock, or halfway. B wants the unit, and must get it once the lock has run out.",
			stock: 1, pace: quick, play: crash, excuse: withoutLock, remedy: "redis",
		},
		{
			Name: "pause", Title: "A's process stands still for longer than its lock lives",
			Story: "One unit is left. A reads that, and its process is paused until its lock has run out. B orders. A is continued, and writes.",
			stock: 1, pace: quick, play: pause, excuse: withoutLease, remedy: "redis",
		},
		{
			Name: "early-release", Title: "A stops before its COMMIT",
			Story: "One unit is left. A has written and not yet committed. B reads the stock, if it gets so far. A commits.",
			stock: 1, pace: calm, play: earlyRelease, excuse: none, remedy: "redis",
		},
		{
			Name: "late-release", Title: "A gives its lock back after that has run out",
			Story: "Two units are left. A sells one, and is paused before it gives its lock back. B takes the lock and reads that one is left. A gives back a lock: whose? A wants the other unit, too.",
			stock: 2, pace: quick, play: lateRelease, excuse: withoutLateRelease, remedy: "redis",
		},
	}
}

func none(Strategy) string { return "" }

func withoutLock(s Strategy) string {
	if s.Lock == "" {
		return "it takes no lock"
	}
	return ""
}

func withoutLease(s Strategy) string {
	if s.Lock == "memory" {
		return "its lock is in the process, and lives as long"
	}
	return withoutLock(s)
}

func withoutLateRelease(s Strategy) string {
	if s.Name == "release-before-commit" {
		return "it has given its lock back by then"
	}
	return withoutLease(s)
}

// Excuse returns why a scenario does not apply to a strategy; empty if it does.
func Excuse(how Strategy, in Scenario) string { return in.excuse(how) }

// Failures returns the scenario that each wrong strategy fails, by its name.
func Failures() map[string]string {
	return map[string]string{
		"none":                  "lost-update",
		"mutex":                 "lost-update",
		"setex":                 "lost-update",
		"setnx-expire":          "crash",
		"short-lease":           "pause",
		"release-before-commit": "early-release",
		"blind-del":             "late-release",
		"get-then-del":          "late-release",
	}
}

// find returns the scenario of this name.
func find(name string) (Scenario, bool) {
	all := Scenarios()
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return Scenario{}, false
	}
	return all[i], true
}

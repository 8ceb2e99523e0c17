package locksim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// journal is the log of one run, in virtual time. Nothing is formatted before
// somebody wants to read it.
type journal struct {
	start time.Time

	mu     sync.Mutex
	events []event
	broken []string
}

type event struct {
	at   time.Duration
	who  string
	what string
	args []any
}

func (j *journal) note(who, what string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, event{time.Since(j.start), who, what, args})
}

// stuck notes a deadlock, which is found outside of the virtual time.
func (j *journal) stuck(why any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var at time.Duration
	if n := len(j.events); n > 0 {
		at = j.events[n-1].at
	}
	j.events = append(j.events, event{at, "all", "BROKEN: %v", []any{why}})
	j.broken = append(j.broken, fmt.Sprint(why))
}

// broke notes that a rule is broken.
func (j *journal) broke(who, rule string, args ...any) {
	j.note(who, "BROKEN: "+rule, args...)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = append(j.broken, fmt.Sprintf("%s: ", who)+fmt.Sprintf(rule, args...))
}

// lines returns the log, one line for each event. Of those of one instant, each
// actor's are together and in their order.
func (j *journal) lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	slices.SortStableFunc(j.events, func(a, b event) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return strings.Compare(a.who, b.who)
	})
	lines := make([]string, len(j.events))
	for i, e := range j.events {
		lines[i] = fmt.Sprintf("%15s  %-9s %s", e.at, e.who, fmt.Sprintf(e.what, e.args...))
	}
	return lines
}

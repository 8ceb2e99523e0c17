package steps

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/shop/loadtest/shopclient"
)

// journal collects what happens in a play. It may be used by many goroutines at
// once.
type journal struct {
	sku string // which is called mug in the events

	mu     sync.Mutex
	events []moment
}

// moment is an Event whose play has not been told yet when it began.
type moment struct {
	at    time.Time
	event Event
}

func (j *journal) add(actor, kind, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, moment{time.Now(), Event{Actor: actor, Kind: kind, Text: text}})
}

// addTape adds what a shop recorded, but what is said twice there.
func (j *journal) addTape(actor string, t shopclient.Tape) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range t.Events {
		kind := e.Kind
		switch {
		case kind == "stop":
			kind, e.Text = Schedule, inWords(e.Text)
		case strings.HasPrefix(e.Answer, "NOSCRIPT"):
			continue // the client sends the script itself, next
		case kind == Step && !telling(e.Text):
			continue
		}
		text := strings.ReplaceAll(e.Text, j.sku, "mug")
		if kind == SQL {
			text, _, _ = strings.Cut(text, " AS k JOIN") // an order, by its idempotency key
		}
		j.events = append(j.events, moment{time.UnixMicro(e.At), Event{Actor: actor, Kind: kind, Text: text, Answer: lockAnswer(text, e.Answer)}})
	}
}

// telling reports whether a step says more than the statements around it.
func telling(step string) bool {
	return step == "read" || strings.HasPrefix(step, "lock-") || step == "released"
}

// told returns all events in order of time, each since began.
func (j *journal) told(began time.Time) []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	slices.SortStableFunc(j.events, func(a, b moment) int {
		return cmp.Compare(a.at.UnixMicro(), b.at.UnixMicro())
	})
	events := make([]Event, len(j.events))
	for i, m := range j.events {
		events[i] = m.event
		events[i].At = max(0, m.at.Sub(began))
	}
	return together(events)
}

// lockAnswer says what the script of package lock answers: a fence, or for how many
// milliseconds the lock is somebody else's, as a negative number.
func lockAnswer(command, answer string) string {
	if !strings.Contains(command, " acquire lock:") {
		return answer
	}
	if left, held := strings.CutPrefix(answer, "-"); held {
		return "no, held for " + left + " ms more"
	}
	return "yes, fence " + answer
}

// inWords says where a request has stopped.
func inWords(stop string) string {
	switch stop {
	case "stopped at writing":
		return "stopped: has read, has not written"
	case "stopped at lock-held":
		return "stopped: has the lock"
	case "stopped at committed":
		return "stopped: has committed, has not released"
	}
	return stop
}

const insert = "INSERT INTO "

// together writes INSERTs of one buyer that follow one another as one, and Redis
// commands that are the same, as of who tries again and again.
func together(events []Event) []Event {
	run := map[string][]int{} // by actor: its latest events of one kind, by index in kept
	times := map[int]int{}    // by index in kept: how often
	kept := events[:0]
	for _, e := range events {
		latest := run[e.Actor]
		if n := len(latest); n > 0 && kept[latest[n-1]].Kind != e.Kind {
			latest = nil
		}
		if n := len(latest); n > 0 && bothInsert(kept[latest[n-1]], e) {
			kept[latest[n-1]].Text += ", " + strings.TrimPrefix(e.Text, insert)
			continue
		}
		same := slices.IndexFunc(latest, func(i int) bool {
			return e.Kind == Redis && kept[i].Text == e.Text && kept[i].Answer == e.Answer
		})
		if same >= 0 {
			times[latest[same]]++
			continue
		}
		run[e.Actor] = append(latest, len(kept))
		kept = append(kept, e)
	}
	for i, more := range times {
		kept[i].Answer += fmt.Sprintf(" (%d times)", more+1)
	}
	return kept
}

func bothInsert(a, b Event) bool {
	is := func(e Event) bool { return strings.HasPrefix(e.Text, insert) && e.Answer == "1 row" }
	return is(a) && is(b)
}

package step

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/shop/internal/lab"
)

// Kinds of events, beside those of package lab.
const (
	HTTP     = "http"     // a request, and its answer
	Schedule = "schedule" // what is done to a buyer: it dies, or its lock runs out
)

// Event is something that happened.
type Event struct {
	At     time.Duration `json:"at_ns"` // since the play began
	Actor  string        `json:"actor"` // A, B or C
	Act    int           `json:"act"`   // index of the act that it belongs to; -1 before the first
	Kind   string        `json:"kind"`
	Text   string        `json:"text"`
	Answer string        `json:"answer,omitempty"`
	Noise  bool          `json:"noise,omitempty"` // it is the same in every purchase, and no other buyer notices it
	Line   string        `json:"line,omitempty"`  // of the source, where the buyer stood before this act
}

// isNoise reports whether an event is left out of timelines.
func (e Event) isNoise() bool {
	switch e.Kind {
	case HTTP:
		return strings.HasPrefix(e.Text, "POST ")
	case lab.KindSQL:
		read := strings.HasPrefix(e.Text, "SELECT ") && !strings.HasSuffix(e.Text, "FOR UPDATE") // the step behind it says what
		ownRow := strings.HasPrefix(e.Text, "INSERT INTO ") || strings.HasPrefix(e.Text, "DELETE FROM ")
		return read || e.Text == "BEGIN" || ownRow && !strings.Contains(e.Text, "locks")
	}
	return false
}

// isLike reports whether another event has what is given here of actor, kind and answer, and begins with this text.
func (e Event) isLike(other Event) bool {
	return other.Actor == cmp.Or(e.Actor, other.Actor) && other.Kind == cmp.Or(e.Kind, other.Kind) &&
		other.Answer == cmp.Or(e.Answer, other.Answer) && strings.HasPrefix(other.Text, e.Text)
}

// journal collects the events of a play. It may be used by many goroutines at once.
type journal struct {
	began  time.Time
	suffix string // of the SKUs' names, which the events leave out

	mu     sync.Mutex
	events []Event
}

// add notes what happens now.
func (j *journal) add(actor, kind, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, Event{At: time.Since(j.began), Actor: actor, Kind: kind, Text: text})
}

// eventsOf returns what a shop has recorded of a buyer, without what other events say as well.
func (j *journal) eventsOf(actor string, recorded []lab.Event) (events []Event) {
	for _, e := range recorded {
		kind, text := e.Kind, strings.ReplaceAll(e.Text, j.suffix, "")
		switch {
		case strings.HasPrefix(e.Answer, "NOSCRIPT"):
			continue // the client sends the script itself, next
		case kind == lab.KindStep && !slices.Contains([]string{"read", "released", "lock-held", "lock-contended", "lock-lost"}, text):
			continue // the statements around it say it
		case kind == lab.KindStop:
			kind = Schedule
		}
		events = append(events, Event{
			At: max(0, time.UnixMicro(e.At).Sub(j.began)), Actor: actor, Kind: kind, Text: text, Answer: lockAnswer(text, e.Answer),
		})
	}
	return events
}

// lockAnswer explains what the acquire script of package lock answers: a fence, or as a negative number for how many
// milliseconds the lock is still held by another owner.
func lockAnswer(command, answer string) string {
	if !strings.Contains(command, " acquire lock:") {
		return answer
	}
	if left, held := strings.CutPrefix(answer, "-"); held {
		return "no, held for " + left + " ms more"
	}
	if _, err := strconv.ParseInt(answer, 10, 64); err != nil {
		return answer // none by now
	}
	return "yes, fence " + answer
}

// with returns all events in order of time: the journal's, and what the shops have recorded of the buyers. The equal
// questions of a buyer who polls for a lock become one event.
func (j *journal) with(buyers []*buyer) []Event {
	j.mu.Lock()
	events := slices.Clone(j.events)
	j.mu.Unlock()
	for _, b := range buyers {
		for try := 1; try <= b.try(); try++ {
			events = append(events, j.eventsOf(b.name, b.recordings[try].Events)...)
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At.Microseconds(), b.At.Microseconds()) })
	var kept []Event
	var times []int            // how often each was sent
	latest := map[string]int{} // index in kept of each buyer's latest event
	for _, e := range events {
		i, known := latest[e.Actor]
		if known && (e.Kind == lab.KindRedis || e.Kind == lab.KindSQL) && kept[i].Text == e.Text && kept[i].Answer == e.Answer {
			times[i]++
			continue
		}
		latest[e.Actor] = len(kept)
		kept, times = append(kept, e), append(times, 1)
	}
	for i, n := range times {
		if n > 1 {
			kept[i].Answer += fmt.Sprintf(" (%d times)", n)
		}
	}
	return kept
}

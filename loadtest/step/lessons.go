package step

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
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

	// Wrong is like the event with which it goes wrong; nil for the write that sells one unit too many.
	Wrong *Event `json:"wrong,omitempty"`
}

// lessonsJSON is the table of the lessons.
//
//go:embed lessons.json
var lessonsJSON []byte

var readLessons = sync.OnceValue(func() (all []Lesson) { //nolint:gochecknoglobals // a constant
	if err := json.Unmarshal(lessonsJSON, &all); err != nil {
		panic(err) // a test reads it
	}
	return all
})

// Lessons returns them in the order in which people make the mistakes.
func Lessons() []Lesson { return slices.Clone(readLessons()) }

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

// firstOversold returns the index of the write that sold more than was there; -1 if none did.
func firstOversold(events []Event, units int64) int {
	var sold int64
	written := map[string]int{} // by buyer, not committed yet
	for i, e := range events {
		switch {
		case e.Kind != SQL:
		case strings.HasPrefix(e.Text, "UPDATE skus") && e.Answer == "1 row":
			written[e.Actor] = i
		case e.Text == "ROLLBACK":
			delete(written, e.Actor)
		case e.Text == "COMMIT" && e.Answer == "OK":
			if at, wrote := written[e.Actor]; wrote {
				if sold++; sold > units {
					return at
				}
			}
			delete(written, e.Actor)
		}
	}
	return -1
}

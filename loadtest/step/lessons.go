package step

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"example.com/shop/internal/lab"
	"example.com/shop/loadtest/lang"
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
	Options  []Option `json:"options"`
	Right    int      `json:"right"`

	Why    string `json:"why"`    // it fails
	Remedy string `json:"remedy"` // a right strategy, for the same schedule
	Fix    string `json:"fix"`    // what that does instead

	// More are steps before the schedule's own, where the remedy takes more of them to the same place.
	More string `json:"more_steps,omitempty"`

	// Wrong is like the event with which it goes wrong; nil for the write that sells one unit too many.
	Wrong *Event `json:"wrong,omitempty"`
	// Saved is like the event with which the remedy prevents it.
	Saved Event `json:"saved"`
}

// Option is an answer that the reader can choose, and why it is right or wrong.
type Option struct {
	Text   string `json:"text"`
	Reason string `json:"reason"`
}

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

// Strategy is the name of the wrong one.
func (l Lesson) Strategy() string { return l.Schedule[:strings.IndexAny(l.Schedule, "*:")] }

// remedySchedule is the lesson's schedule with the remedy.
func (l Lesson) remedySchedule() string {
	bounds, acts, _ := strings.Cut(l.Schedule[len(l.Strategy()):], ":")
	return l.Remedy + bounds + ":" + l.More + acts
}

// judge says how it ended. wanted is whether a buyer who lives was refused.
func (p *Position) judge(stuck, wanted bool) {
	held := slices.ContainsFunc(p.Events, func(e Event) bool { return e.Text == lab.HoldEnds }) // until then nobody else could buy
	p.Passed = !stuck && (p.Sold == p.Units || p.Sold < p.Units && (!wanted || held))
	lessons := Lessons()
	is := slices.IndexFunc(lessons, func(l Lesson) bool { return l.Schedule == p.Schedule })
	switch {
	case p.Passed && held && p.Sold < p.Units:
		p.Why = "No unit was sold twice. A unit whose hold has ended is for sale again."
	case p.Passed && p.Sold < p.Units:
		p.Why = "No unit was sold twice, and no buyer waits for ever. Units are left because buyers who wanted them have died."
	case p.Passed:
		p.Why = "No unit was sold twice, none is left, and no buyer waits for ever."
	case is >= 0:
		lesson := lessons[is]
		p.Why, p.Remedy = lesson.Why, lesson.Fix
		if lesson.Wrong != nil {
			p.Wrong = slices.IndexFunc(p.Events, lesson.Wrong.isLike)
		}
	case p.Sold > p.Units && held:
		p.Why = "An order was paid whose hold had ended, when its unit was another buyer's."
	case p.Sold > p.Units && slices.ContainsFunc(p.Events, func(e Event) bool { return e.Answer == "taken" }):
		p.Why = "The count said that a unit was left when it was sold already. Nothing in the database checks that."
	case p.Sold > p.Units && slices.ContainsFunc(p.Acts, func(name string) bool { return name[0] == expires }):
		p.Why = "A lock ran out while its holder stood still, and another buyer got it. " +
			"The marked UPDATE saves what its buyer computed before that: nothing in the statement checks it."
	case p.Sold > p.Units:
		p.Why = "The marked UPDATE saves what its buyer computed from an earlier read, which was out of date by then. " +
			"Nothing in the statement checks that."
	case stuck:
		p.Why = "A buyer waits for a lock that is never released and has no TTL."
	default:
		p.Why = "A unit is left, and no buyer asks for it any more."
	}
}

// outcome is a sentence with the figures, in a language.
func (p Position) outcome(language string) string {
	units := lang.Text(language, "%d of %d units sold", p.Sold, p.Units)
	if p.Units == 1 {
		units = lang.Text(language, "%d sold of 1 unit", p.Sold)
	}
	if p.Sold > p.Units {
		units += lang.Text(language, ", %d too many", p.Sold-p.Units)
	}
	var answers []string
	for _, b := range p.Buyers {
		says := lang.Text(language, b.Answer)
		switch b.State {
		case Died:
			says = lang.Text(language, "died")
		case Ready, Waits:
			says = lang.Text(language, "waits for ever")
		}
		answers = append(answers, lang.Text(language, "%s: %s", b.Name, says))
	}
	return lang.Text(language, "%s. %s.", units, strings.Join(answers, lang.Text(language, "; ")))
}

// firstOversold returns the index of the write that sold more than was there; -1 if none did.
func firstOversold(events []Event, units int64) int {
	var sold int64
	over := map[string]bool{}   // whose hold has ended
	written := map[string]int{} // by buyer, not committed yet
	for i, e := range events {
		switch {
		case e.Text == lab.HoldEnds:
			over[e.Actor] = true
		case e.Kind != lab.KindSQL:
		case strings.HasPrefix(e.Text, "UPDATE orders SET status = 'paid'") && over[e.Actor]:
			return i
		case strings.HasPrefix(e.Text, "UPDATE skus SET available = available +"): // units come back
			sold--
		case strings.HasPrefix(e.Text, "UPDATE skus") && e.Answer == "1 row":
			written[e.Actor] = i
		case e.Text == "ROLLBACK" || e.Text == "COMMIT" && e.Answer == "OK":
			if at, wrote := written[e.Actor]; wrote && e.Text == "COMMIT" {
				if sold++; sold > units {
					return at
				}
			}
			delete(written, e.Actor)
		}
	}
	return -1
}

package step

import (
	"slices"
	"strings"

	"example.com/shop/loadtest/lang"
)

// judge says how it ended. wanted is whether a buyer who lives was refused.
func (p *Position) judge(stuck, wanted bool) {
	p.Passed = !stuck && (p.Sold == p.Units || p.Sold < p.Units && !wanted)
	p.Outcome = p.outcome("")
	lessons := Lessons()
	is := slices.IndexFunc(lessons, func(l Lesson) bool { return l.Schedule == p.Schedule })
	switch {
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
	case p.Sold > p.Units && slices.ContainsFunc(p.Acts, func(name string) bool { return name[0] == expires }):
		p.Why = "A lock ran out while its holder stood still, and another buyer got it. The marked UPDATE saves what its buyer computed before that: nothing in the statement checks it."
	case p.Sold > p.Units:
		p.Why = "The marked UPDATE saves what its buyer computed from an earlier read, which was out of date by then. Nothing in the statement checks that."
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

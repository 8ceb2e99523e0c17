package step

import (
	"fmt"
	"slices"
	"strings"
)

// judge says how it ended.
func (p *Position) judge(stuck bool, answers []string) {
	p.Passed = p.Sold == p.Units && !stuck
	units := fmt.Sprintf("%d of %d units sold", p.Sold, p.Units)
	if p.Units == 1 {
		units = fmt.Sprintf("%d sold of 1 unit", p.Sold)
	}
	if p.Sold > p.Units {
		units += fmt.Sprintf(", %d too many", p.Sold-p.Units)
	}
	p.Outcome = units + ". " + strings.Join(answers, "; ") + "."
	lessons := Lessons()
	is := slices.IndexFunc(lessons, func(l Lesson) bool { return l.Schedule == p.Schedule })
	switch {
	case p.Passed:
		p.Why = "No unit was sold twice, none is left, and no buyer waits for ever."
	case is >= 0:
		lesson := lessons[is]
		p.Why, p.Remedy = lesson.Why, lesson.Fix
		if lesson.wrong != nil {
			p.Wrong = slices.IndexFunc(p.Events, lesson.wrong)
		}
	case p.Sold > p.Units:
		p.Why = "The marked UPDATE saves what its buyer computed from an earlier read, which was out of date by then. Nothing in the statement checks that."
	case stuck:
		p.Why = "A buyer waits for a lock that nobody will release and that no TTL ends."
	default:
		p.Why = "A unit is left, and nobody asks for it any more."
	}
}

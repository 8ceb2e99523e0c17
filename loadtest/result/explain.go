package result

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"example.com/shop/loadtest/verdict"
)

// Lead says what was wanted, and from whom.
func (r Run) Lead() string {
	from := count(int64(r.Instances), "shop instance", "shop instances")
	if r.Target != "" {
		from = r.Target
	}
	return r.Wanted + ", from " + from + "."
}

// RoundsNote says which figures the report on several rounds has.
const RoundsNote = "Rates and waits are medians over the rounds; all else is of the worst round."

// Outcome is the result in one sentence.
func (s Strategy) Outcome() string {
	sold := fmt.Sprintf("Sold %s units of %s", humanize.Comma(s.UnitsSold), humanize.Comma(s.Supplied))
	turnedAway := count(s.Refused+s.Errors, "buyer", "buyers")
	switch s.Verdict {
	case verdict.Oversold:
		return fmt.Sprintf("%s: %s of them cannot be delivered.", sold, humanize.Comma(s.Oversold))
	case verdict.Undersold:
		return fmt.Sprintf("%s and let %s go without one while units were left.", sold, turnedAway)
	case verdict.Inconsistent:
		return sold + ", but the shop's books and what the buyers were told disagree."
	case verdict.Correct:
	}
	return fmt.Sprintf("%s, none twice, and turned %s away.", sold, turnedAway)
}

// Remarks are findings and notes, for people. What is wrong inside the books of a shop that oversold on purpose is the
// same mistake once more and is left to the JSON.
func (s Strategy) Remarks() []string {
	var lines []string
	if s.PromisesCorrect || s.Verdict == verdict.Inconsistent {
		lines = append(lines, s.Findings...)
	}
	if s.NotCaught() && s.CaughtIn == "" {
		lines = append(lines, "not caught in this race; caught by: go run ./loadtest step "+s.Name)
	}
	lines = append(lines, s.Notes...)
	if s.Retries > 0 {
		lines = append(lines, "buyers retried "+count(s.Retries, "time", "times")+", with the same key")
	}
	if s.Replays > 0 {
		lines = append(lines, count(s.Replays, "order was", "orders were")+" sent again with the same key and came out as one each time")
	}
	if s.Cancelled > 0 {
		lines = append(lines, count(s.Cancelled, "order was", "orders were")+" cancelled, and their units for sale again")
	}
	return lines
}

// Promises says which strategies were as correct as they are designed to be: what the exit code says.
func (r Report) Promises() string {
	var kept, broken []string
	for _, s := range r.Strategies {
		switch {
		case !s.PromisesCorrect:
		case !s.Correct():
			broken = append(broken, s.Name)
		case s.Errors > 0:
			broken = append(broken, fmt.Sprintf("%s (which left %s without an answer)", s.Name, count(s.Errors, "buyer", "buyers")))
		default:
			kept = append(kept, s.Name)
		}
	}
	switch {
	case len(broken) > 0:
		return "Designed to be correct and was not: " + strings.Join(broken, ", ") + "."
	case len(kept) == 0:
		return "None of these strategies is designed to be correct."
	case len(kept) == 1:
		return "As expected, " + kept[0] + " was correct."
	}
	return "As expected, " + english.WordSeries(kept, "and") + " were correct."
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(n) + " " + many
}

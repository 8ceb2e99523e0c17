package result

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/verdict"
)

// Outcome is the result in one sentence or two.
func (s Strategy) Outcome() string {
	units, supplied := humanize.Comma(s.UnitsSold), humanize.Comma(s.Supplied)
	switch s.Verdict {
	case verdict.Oversold:
		if len(s.SKUs) > 1 {
			return fmt.Sprintf("Sold %s units of %s, and %s cannot be delivered: each of the %d SKUs counts by itself.",
				units, supplied, humanize.Comma(s.Oversold), len(s.SKUs))
		}
		return fmt.Sprintf("Sold %s units of %s: %s for an order that cannot be delivered.",
			units, supplied, count(s.Oversold, "buyer waits", "buyers wait"))
	case verdict.Undersold:
		return fmt.Sprintf("Sold %s units of %s and let %s go without one while units were left.",
			units, supplied, count(s.Refused+s.Errors, "buyer", "buyers"))
	case verdict.Inconsistent:
		return fmt.Sprintf("Sold %s units of %s, but the shop's books and what the buyers were told disagree.", units, supplied)
	case verdict.Correct:
	}
	sentence := fmt.Sprintf("Sold %s units of %s, none twice", units, supplied)
	switch {
	case s.Errors > 0:
		sentence += fmt.Sprintf(", and turned %s away.", count(s.Refused+s.Errors, "buyer", "buyers"))
	case s.Refused > 0:
		sentence += fmt.Sprintf(", and turned the other %s away.", count(s.Refused, "buyer", "buyers"))
	default:
		sentence += ", and turned nobody away."
	}
	return sentence
}

// Unanswered is a sentence on the buyers without a definite answer; empty if all have one.
func (s Strategy) Unanswered() string {
	n := s.Errors - s.Unsent
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s told neither of an order nor that it is sold out.", count(n, "buyer was", "buyers were"))
}

// Remarks are findings and notes, for people. What is wrong inside the books of a shop
// that oversold on purpose is the same mistake once more and is left to the JSON.
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

// LockTime is a row of the table of lock times.
type LockTime struct {
	Name string
	crowd.Latency
}

// LockTimes are the rows of that table, none if the strategy has no lock.
func (s Strategy) LockTimes() []LockTime {
	if s.Locks == nil {
		return nil
	}
	rows := []LockTime{{"wait", s.Locks.WaitMS}, {"hold", s.Locks.HoldMS}}
	if s.Locks.HandOvers > 0 {
		rows = append(rows, LockTime{"hand-over", s.Locks.HandOverMS})
	}
	return rows
}

// Overlapped is a sentence on leases that overlapped; empty if none did.
func (s Strategy) Overlapped() string {
	if s.Locks == nil || s.Locks.Overlaps == 0 {
		return ""
	}
	return fmt.Sprintf("In %s the next holder entered before the previous one had committed.", count(s.Locks.Overlaps, "case", "cases"))
}

// Promises says which strategies were as correct as they are designed to be: what the
// exit code says.
func (r Report) Promises() []string {
	var kept, wrong, silent []string
	for _, s := range r.Strategies {
		switch {
		case !s.PromisesCorrect:
		case !s.Correct():
			wrong = append(wrong, s.Name)
		case s.Errors > 0:
			silent = append(silent, fmt.Sprintf("%s (%s)", s.Name, count(s.Errors, "buyer", "buyers")))
		default:
			kept = append(kept, s.Name)
		}
	}
	var lines []string
	if len(wrong) > 0 {
		lines = append(lines, "Designed to be correct and was not: "+strings.Join(wrong, ", ")+".")
	}
	if len(silent) > 0 {
		lines = append(lines, "Designed to be correct, but left buyers without an answer: "+strings.Join(silent, ", ")+".")
	}
	switch {
	case len(lines) > 0:
		return lines
	case len(kept) == 1:
		return []string{"As expected, " + kept[0] + " was correct."}
	case len(kept) > 1:
		last := len(kept) - 1
		return []string{"As expected, " + strings.Join(kept[:last], ", ") + " and " + kept[last] + " were correct."}
	}
	return []string{"None of these strategies is designed to be correct."}
}

// Sentence is a sentence on what the load test cost.
func (h Harness) Sentence() string {
	what := "The load test alone"
	if h.WithShops {
		what = "The load test with its shops"
	}
	return fmt.Sprintf("%s used %.1f s of CPU, %.0f %% of this machine, and at most %.0f MB of memory.",
		what, h.CPUSeconds, 100*h.CPUShare, h.PeakMemoryMB)
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(n) + " " + many
}

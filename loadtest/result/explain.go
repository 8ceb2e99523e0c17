package result

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/verdict"
)

// Lead says what was wanted, and from whom.
func (r Run) Lead() string {
	from := english.Plural(r.Instances, "shop instance", "")
	if r.Target != "" {
		from = r.Target
	}
	return r.Wanted + ", from " + from + "."
}

// Outcome is the result in one sentence, in a language.
func (s Strategy) Outcome(language string) string {
	sold, supplied := humanize.Comma(s.UnitsSold), humanize.Comma(s.Supplied)
	away := s.Refused + s.Errors
	turnedAway := lang.Text(language, "%s buyers", humanize.Comma(away))
	if away == 1 {
		turnedAway = lang.Text(language, "1 buyer")
	}
	switch s.Verdict {
	case verdict.Oversold:
		return lang.Text(language, "Sold %s units of %s: %s of them cannot be delivered.", sold, supplied, humanize.Comma(s.Oversold))
	case verdict.Undersold:
		return lang.Text(language, "Sold %s units of %s and let %s go without one while units were left.", sold, supplied, turnedAway)
	case verdict.Inconsistent:
		return lang.Text(language, "Sold %s units of %s, but the shop's books and what the buyers were told disagree.", sold, supplied)
	case verdict.Correct:
	}
	return lang.Text(language, "Sold %s units of %s, none twice, and turned %s away.", sold, supplied, turnedAway)
}

// Remarks are findings and notes, for people. What is wrong inside the books of a shop that oversold on purpose is the
// same mistake once more and is left to the JSON.
func (s Strategy) Remarks() []string {
	var lines []string
	if s.Designed || s.Verdict == verdict.Inconsistent {
		lines = append(lines, s.Findings...)
	}
	if s.NotCaught() && s.CaughtIn == "" {
		lines = append(lines, "not caught in this race; caught by: go run ./loadtest step "+s.Name)
	}
	lines = append(lines, s.Notes...)
	if s.Retries > 0 {
		lines = append(lines, "buyers retried "+english.Plural(int(s.Retries), "time", "")+", with the same key")
	}
	return lines
}

// Expected says which strategies were as correct as they are designed to be, in a language: what the exit code says.
func (r Report) Expected(language string) string {
	var kept, broken []string
	for _, s := range r.Strategies {
		switch {
		case !s.Designed:
		case !s.Correct():
			broken = append(broken, s.Name)
		case s.Errors > 0:
			broken = append(broken, fmt.Sprintf("%s (which left %s without an answer)", s.Name, english.Plural(int(s.Errors), "buyer", "")))
		default:
			kept = append(kept, s.Name)
		}
	}
	switch {
	case len(broken) > 0:
		return lang.Text(language, "Designed to be correct and was not: %s.", strings.Join(broken, ", "))
	case len(kept) == 0:
		return lang.Text(language, "None of these strategies is designed to be correct.")
	case len(kept) == 1:
		return lang.Text(language, "As expected, %s was correct.", kept[0])
	}
	return lang.Text(language, "As expected, %s were correct.", english.WordSeries(kept, lang.Text(language, "and")))
}

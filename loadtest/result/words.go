package result

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

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
	when := "all at once"
	if r.Seconds > 0 {
		when = fmt.Sprintf("again and again for %v s", r.Seconds)
	}
	return fmt.Sprintf("%s buyers want one of %s units each, %s, from %s.", humanize.Comma(int64(r.Buyers)), humanize.Comma(r.Stock), when, from)
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
	if s.NotCaught() {
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

// Column is one figure of a race, in the tables of the terminal and of the page. Adding one is adding a row to Columns.
type Column struct {
	Name   string
	Help   string // in --help
	Number func(Strategy) float64
	text   func(float64) string
}

// Columns are the figures between a strategy's name and its verdict.
func Columns() []Column {
	return []Column{
		{"orders", "orders that the shop's audit found after the race",
			func(s Strategy) float64 { return float64(s.Orders) }, Rounded},
		{"oversold", "units in orders beyond those supplied; counted from orders, because a lost update oversells while the stock column reads zero",
			func(s Strategy) float64 { return float64(s.Oversold) }, Rounded},
		{"undersold", "units in no order although buyers went away without one",
			func(s Strategy) float64 { return float64(s.Undersold) }, Rounded},
		{"refused", "buyers who were told that it is sold out",
			func(s Strategy) float64 { return float64(s.Refused) }, Rounded},
		{"errors", "buyers with another answer, or none after several tries",
			func(s Strategy) float64 { return float64(s.Errors) }, Rounded},
		{"answers/s", "orders and refusals per second, from the moment all buyers were released to the last answer",
			func(s Strategy) float64 { return s.AnswersPerSecond }, Rounded},
		{"p50", "how long half of the buyers waited at most, from that same moment, so that the time in a queue counts",
			func(s Strategy) float64 { return s.LatencyMS.P50 }, Milliseconds},
		{"p99", "the same of 99 of 100 buyers",
			func(s Strategy) float64 { return s.LatencyMS.P99 }, Milliseconds},
	}
}

// Show shows the figure of a strategy.
func (c Column) Show(s Strategy) string { return c.text(c.Number(s)) }

// Milliseconds shows a duration with the digits that matter.
func Milliseconds(ms float64) string {
	if ms < 10_000 {
		return Rounded(ms) + " ms"
	}
	return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// Rounded shows a number with one decimal below 10 and none above.
func Rounded(n float64) string {
	if n < 10 {
		return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64)
	}
	return humanize.Comma(int64(n + 0.5))
}

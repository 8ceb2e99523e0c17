// Package result holds the results of a load test: one model for the terminal, the page and JSON.
package result

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/shirou/gopsutil/v4/cpu"

	"example.com/shop/internal/app"
	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/shopclient"
)

// Version is the version of the JSON. An added field does not change it.
const Version = 5

// Report is one load test.
type Report struct {
	Version    int        `json:"version"`
	StartedAt  time.Time  `json:"started_at"`
	Machine    Machine    `json:"machine"`
	Run        Run        `json:"run"`
	Strategies []Strategy `json:"strategies"`
	NotRun     []NotRun   `json:"not_run"`
}

// Strategy is the race of one strategy: the shop's description of it, what the crowd was told, and the judgement.
// Orders and units are the shop's books; the other counts are the buyers'.
type Strategy struct {
	shopclient.Strategy
	SKU       string `json:"sku"`
	Supplied  int64  `json:"supplied"`
	Orders    int64  `json:"orders"`
	UnitsSold int64  `json:"units_sold"`
	StockLeft int64  `json:"stock_left"` // the stock column after the race, which a wrong strategy may have got wrong
	crowd.Summary
	crowd.Series
	Judgement
}

// NotRun is a strategy that had no race.
type NotRun struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Machine is what the figures depend on. What is not known is left out.
type Machine struct {
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	CPUs     int    `json:"cpus"` // that this process may use
	CPUModel string `json:"cpu_model,omitempty"`
	Go       string `json:"go_version"`
	Commit   string `json:"commit,omitempty"`
	Database string `json:"database"`
	Redis    string `json:"redis"`

	// The servers as the shop names them, such as MySQL 9.1.0.
	DatabaseVersion string `json:"database_version,omitempty"`
	RedisVersion    string `json:"redis_version,omitempty"`
}

// ThisMachine returns the machine of this process, without servers.
func ThisMachine() Machine {
	_, commit := app.ThisBuild()
	m := Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Go: runtime.Version(), Commit: commit,
	}
	if all, err := cpu.Info(); err == nil && len(all) > 0 {
		m.CPUModel = all[0].ModelName
	}
	return m
}

// Run is what was asked for.
type Run struct {
	Buyers    int64   `json:"buyers"`
	Stock     int64   `json:"stock"`
	Instances int     `json:"instances,omitempty"` // not known of a target
	Target    string  `json:"target,omitempty"`
	ThinkMS   float64 `json:"think_ms"`
	Seconds   float64 `json:"seconds,omitempty"` // for which each buyer ordered again and again; 0: each ordered once
	Command   string  `json:"command"`           // that repeats the run; passwords are left out
}

// Correct reports whether nothing was wrong.
func (s Strategy) Correct() bool { return s.Verdict == Correct }

// NotCaught reports whether a strategy that is broken on purpose looked correct.
func (s Strategy) NotCaught() bool { return s.Correct() && !s.Designed }

// Broken reports whether a strategy that is designed to be correct was not, or left buyers without an answer.
func (r Report) Broken() bool {
	return slices.ContainsFunc(r.Strategies, func(s Strategy) bool { return s.Designed && (!s.Correct() || s.Errors > 0) })
}

// JSON returns how a report is written for programs, as Save wants it.
func JSON(report any) func(io.Writer) error {
	return func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(report)
	}
}

// CSV returns how the figures of a report are written, as Save wants it: one row for each strategy. The
// columns have the names of the JSON's fields.
func CSV(r Report) func(io.Writer) error {
	rows := [][]string{strings.Fields("strategy designed verdict supplied orders units_sold stock_left oversold " +
		"undersold acknowledged refused errors" +
		" unknown retries deadlocks seconds answers_per_second orders_per_second p50_ms p90_ms p95_ms p99_ms max_ms")}
	for _, s := range r.Strategies {
		w := s.LatencyMS
		var row []string
		for _, value := range []any{
			s.Name, s.Designed, s.Verdict, s.Supplied, s.Orders, s.UnitsSold, s.StockLeft, s.Oversold, s.Undersold,
			s.Acknowledged, s.Refused, s.Errors,
			s.Unknown, s.Retries, s.Deadlocks, s.Seconds, s.AnswersPerSecond, s.OrdersPerSecond, w.P50, w.P90, w.P95, w.P99, w.Max,
		} {
			row = append(row, fmt.Sprint(value))
		}
		rows = append(rows, row)
	}
	return func(w io.Writer) error { return csv.NewWriter(w).WriteAll(rows) }
}

// Save writes a report to a file, to stdout for "-", nowhere without a name. If write fails, the file is as it was.
func Save(file string, stdout io.Writer, write func(io.Writer) error) error {
	var b bytes.Buffer
	if file == "" {
		return nil
	}
	err := write(&b)
	if err == nil && file == "-" {
		_, err = b.WriteTo(stdout)
	} else if err == nil {
		err = os.WriteFile(file, b.Bytes(), 0o644) //nolint:gosec // a report is no secret
	}
	if err != nil {
		return fmt.Errorf("save the report: %w", err)
	}
	return nil
}

// Lead says what was wanted, and from whom, in a language.
func (r Run) Lead(language string) string {
	from := lang.Text(language, english.Plural(r.Instances, "shop instance", ""))
	if r.Target != "" {
		from = r.Target
	}
	when := lang.Text(language, "all at once")
	if r.Seconds > 0 {
		when = lang.Text(language, "again and again for %v s", r.Seconds)
	}
	return lang.Text(language, "%s buyers each want one of %s units, %s, from %s.", humanize.Comma(r.Buyers),
		humanize.Comma(r.Stock), when, from)
}

// Server names the Database or the Redis of a Machine, in a language.
func Server(name, language string) string {
	kind, address, named := strings.Cut(name, " at ")
	if !named {
		return lang.Text(language, name)
	}
	return lang.Text(language, "%s at %s", lang.Text(language, kind), address)
}

// Outcome is the result in one sentence, in a language.
func (s Strategy) Outcome(language string) string {
	sold, supplied := humanize.Comma(s.UnitsSold), humanize.Comma(s.Supplied)
	away := s.Refused + s.Errors
	turnedAway := lang.Text(language, humanize.Comma(away)+" "+english.PluralWord(int(away), "buyer", ""))
	switch s.Verdict {
	case Oversold:
		return lang.Text(language, "Sold %s units of %s: %s of them cannot be delivered.", sold, supplied, humanize.Comma(s.Oversold))
	case Undersold:
		return lang.Text(language, "Sold %s units of %s and let %s go without one while units were left.", sold, supplied, turnedAway)
	case Inconsistent:
		return lang.Text(language, "Sold %s units of %s, but the shop's books and what the buyers were told disagree.", sold, supplied)
	case Correct:
	}
	return lang.Text(language, "Sold %s units of %s, none twice, and turned %s away.", sold, supplied, turnedAway)
}

// Remarks are findings and notes, for people, in a language. What is wrong inside the books of a shop that oversold on
// purpose is the same mistake once more and is left to the JSON.
func (s Strategy) Remarks(language string) []string {
	var lines []string
	if s.Designed || s.Verdict == Inconsistent {
		lines = append(lines, s.Findings...)
	}
	if s.NotCaught() {
		lines = append(lines, lang.Text(language, "not caught in this race; caught by: go run ./loadtest step %s", s.Name))
	}
	lines = append(lines, s.Notes...)
	if s.Retries > 0 {
		lines = append(lines, "buyers retried "+english.Plural(int(s.Retries), "time", "")+", with the same key")
	}
	if s.Deadlocks > 0 {
		lines = append(lines, "the database ended "+english.Plural(int(s.Deadlocks), "transaction", "")+" by a deadlock")
	}
	for i, line := range lines {
		lines[i] = lang.Text(language, line)
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
			left := lang.Text(language, english.Plural(int(s.Errors), "buyer", ""))
			broken = append(broken, lang.Text(language, "%s (which left %s without an answer)", s.Name, left))
		default:
			kept = append(kept, s.Name)
		}
	}
	switch {
	case len(broken) > 0:
		return lang.Text(language, "Designed to be correct and was not: %s.", strings.Join(broken, lang.Text(language, ", ")))
	case len(kept) == 0:
		return lang.Text(language, "None of these strategies is designed to be correct.")
	case len(kept) == 1:
		return lang.Text(language, "As expected, %s was correct.", kept[0])
	}
	names := english.WordSeries(kept, "and")
	if language == "zh" {
		names = strings.Join(kept, "、")
	}
	return lang.Text(language, "As expected, %s were correct.", names)
}

// Column is one figure of a race, in the tables of the terminal and of the page. Adding one is adding a row to Columns.
type Column struct {
	Name   string
	Help   string // in --help
	Number func(Strategy) float64
}

// Columns returns the figures between a strategy's name and its verdict.
func Columns() []Column {
	return []Column{
		{"orders", "orders that the shop's audit found after the race",
			func(s Strategy) float64 { return float64(s.Orders) }},
		{"oversold", "units in orders beyond those supplied; counted from orders, because a lost update oversells while " +
			"the stock column reads zero",
			func(s Strategy) float64 { return float64(s.Oversold) }},
		{"undersold", "units in no order although buyers went away without one",
			func(s Strategy) float64 { return float64(s.Undersold) }},
		{"refused", "buyers who were told that it is sold out",
			func(s Strategy) float64 { return float64(s.Refused) }},
		{"errors", "buyers with another answer, or none after several tries",
			func(s Strategy) float64 { return float64(s.Errors) }},
		{"answers/s", "orders and refusals per second, from the moment all buyers were released to the last answer",
			func(s Strategy) float64 { return s.AnswersPerSecond }},
		{"p50 ms", "the time within which half of the buyers had their answer, from that same moment, so that the time in a queue counts",
			func(s Strategy) float64 { return s.LatencyMS.P50 }},
		{"p95 ms", "the same of 95 of 100 buyers",
			func(s Strategy) float64 { return s.LatencyMS.P95 }},
		{"p99 ms", "the same of 99 of 100 buyers",
			func(s Strategy) float64 { return s.LatencyMS.P99 }},
	}
}

// Show shows the figure of a strategy.
func (c Column) Show(s Strategy) string { return Rounded(c.Number(s)) }

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

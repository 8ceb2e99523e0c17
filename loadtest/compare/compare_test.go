package compare_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/compare"
	"example.com/shop/loadtest/report"
)

// doc.go: "Speeds are compared only where both runs asked for the same and ran on
// the same machine, database and Redis; verdicts always."
func TestOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(r *report.Report)
		differ  []string
		worse   []string
		missing [2][]string
	}{
		"the same": {change: func(*report.Report) {}},
		// "The commit, the Go version and the time may differ."
		"another commit":    {change: func(r *report.Report) { r.Machine.Commit, r.Machine.Go, r.StartedAt = "abc", "go2", time.Now() }},
		"more buyers":       {change: func(r *report.Report) { r.Run.Buyers = 5 }, differ: []string{"buyers"}},
		"another machine":   {change: func(r *report.Report) { r.Machine.CPUs, r.Machine.CPUModel = 64, "fast" }, differ: []string{"CPUs", "CPU"}},
		"a real database":   {change: func(r *report.Report) { r.Machine.DatabaseVersion = "MySQL 9.7" }, differ: []string{"database"}},
		"open, of carts":    {change: func(r *report.Report) { r.Run.Rate, r.Run.Seconds, r.Run.SKUs, r.Run.Lines = 5, 2, 3, 2 }, differ: []string{"rate", "duration", "SKUs", "lines"}},
		"one strategy less": {change: func(r *report.Report) { r.Strategies = r.Strategies[1:] }, missing: [2][]string{{"none"}, nil}},
		"another strategy":  {change: func(r *report.Report) { r.Strategies[0].Name = "mutex" }, missing: [2][]string{{"none"}, {"mutex"}}},
		"worse":             {change: func(r *report.Report) { r.Strategies[1].Verdict = "undersold" }, worse: []string{"redis"}},
		"better":            {change: func(r *report.Report) { r.Strategies[0].Verdict = "inconsistent" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := example()
			c.change(&after)
			got := compare.Of(example(), after)
			var differ []string
			for _, d := range got.Differ {
				differ = append(differ, d.What)
			}
			if diff := cmp.Diff(c.differ, differ); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if !slices.Equal(got.Worse(), c.worse) || !slices.Equal(got.OnlyFirst, c.missing[0]) || !slices.Equal(got.OnlySecond, c.missing[1]) {
				t.Errorf("got %v worse, %v and %v in one alone; want %v, %v", got.Worse(), got.OnlyFirst, got.OnlySecond, c.worse, c.missing)
			}
			if want := c.differ == nil && c.missing[0] == nil && c.missing[1] == nil; got.Whole() != want {
				t.Errorf("whole: got %v, want %v", got.Whole(), want)
			}
		})
	}
}

func TestComparison_Print(t *testing.T) {
	t.Parallel()
	after := example()
	after.Machine.Commit = "abc1234"
	after.Strategies[1].OrdersPerSecond, after.Strategies[1].LatencyMS.P50 = 150, 250
	var b bytes.Buffer
	if err := compare.Of(example(), after).Print(report.Printer{Out: &b}); err != nil {
		t.Fatal(err)
	}
	want := `
before: 0001-01-01 00:00 UTC, go1.26
after:  0001-01-01 00:00 UTC, abc1234, go1.26

strategy                before     after  after/before
──────────────────────────────────────────────────────
none      verdict     oversold  oversold
          orders/s       800.0     800.0          1.00
          refusals/s       0.0       0.0             -
          p50            200ms     200ms          1.00
          p99            400ms     400ms          1.00
redis     verdict      correct   correct
          orders/s       100.0     150.0          1.50
          refusals/s     900.0     900.0          1.00
          p50            500ms     250ms          0.50
          p99            900ms     900ms          1.00
`[1:]
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What differs is said, speeds are left out, verdicts are not.
func TestComparison_Print_otherMachine(t *testing.T) {
	t.Parallel()
	after := example()
	after.Machine.CPUs, after.Strategies[1].Verdict, after.Strategies[0].Name = 64, "undersold", "mutex"
	var b bytes.Buffer
	if err := compare.Of(example(), after).Print(report.Printer{Out: &b, Color: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"These two runs cannot be compared by speed:\n  CPUs: 2 before, 64 after\n", "\x1b[31mundersold\x1b[0m",
		"\nOnly before: none\n", "\nOnly after: mutex\n", "\x1b[31mWorse than before: redis.\x1b[0m\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "orders/s") {
		t.Errorf("want no speeds in\n%s", b.String())
	}
}

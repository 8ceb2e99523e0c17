package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/report"
)

func none() report.Strategy {
	return report.Strategy{
		Name: "none", Lesson: "Read, think, write.", Supplied: 100, Orders: 431, UnitsSold: 431, Oversold: 331,
		Acknowledged: 431, Refused: 569, OrdersPerSecond: 812.3, RefusalsPerSecond: 1072.4,
		LatencyMS: report.LatencyMS{P50: 212.4, P90: 400, P99: 498.6, Max: 530}, Verdict: "oversold",
		Findings: []string{"books: I1 oversold by 331"}, Notes: []string{},
	}
}

func redis() report.Strategy {
	return report.Strategy{
		Name: "redis", PromisesCorrect: true, Lesson: "A lease.", Supplied: 100, Orders: 100, UnitsSold: 100,
		Acknowledged: 100, Refused: 900, OrdersPerSecond: 140, RefusalsPerSecond: 1260,
		LatencyMS: report.LatencyMS{P50: 9.44, P90: 700, P99: 12345, Max: 13000}, Verdict: "correct",
		Findings: []string{}, Notes: []string{},
	}
}

func TestPrinter_Table(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := report.Printer{Out: &b}
	if err := p.Table(report.Report{Strategies: []report.Strategy{none(), redis()}}); err != nil {
		t.Fatal(err)
	}
	want := `
strategy  supplied  orders  oversold  undersold  refused  errors  orders/s    p50    p99  verdict
──────────────────────────────────────────────────────────────────────────────────────────────────
none           100     431       331          0      569       0       812  212ms  499ms  oversold
redis          100     100         0          0      900       0       140  9.4ms  12.3s  correct
`[1:]
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestPrinter_Table_fits_100_columns(t *testing.T) {
	t.Parallel()
	s := none()
	s.Name, s.Verdict = "release-before-commit", "inconsistent"
	s.Supplied, s.Orders, s.Oversold, s.Refused, s.Errors = 100_000, 100_000, 100_000, 100_000, 100_000
	s.OrdersPerSecond, s.LatencyMS.P50, s.LatencyMS.P99 = 12_345, 9_999, 3_600_000
	for _, colour := range []bool{false, true} {
		var b bytes.Buffer
		p := report.Printer{Out: &b, Color: colour}
		if err := p.Table(report.Report{Strategies: []report.Strategy{s}}); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("\x1b[31m", "", "\x1b[0m", "").Replace(b.String())
		for line := range strings.Lines(text) {
			if got := utf8.RuneCountInString(strings.TrimRight(line, "\n")); got > 100 {
				t.Errorf("colour %v: line of %d columns, want at most 100:\n%s", colour, got, line)
			}
		}
	}
}

// A strategy that had no race stands below, with the reason.
func TestPrinter_Explain_not_run(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	r := report.Report{
		Strategies: []report.Strategy{redis()},
		NotRun:     []report.NotRun{{Name: "zookeeper", Reason: "it needs a ZooKeeper"}},
	}
	if err := (report.Printer{Out: &b}).Explain(r); err != nil {
		t.Fatal(err)
	}
	want := "\nNot run:\nzookeeper  it needs a ZooKeeper.\n\nPromised to be correct and was: redis.\n"
	if !strings.HasSuffix(b.String(), want) {
		t.Errorf("got %q, want at its end %q", b.String(), want)
	}
}

func TestPrinter_Explain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(wrong, right *report.Strategy)
		want   []string
	}{
		{
			"as it should be", func(_, _ *report.Strategy) {},
			[]string{
				"none   Read, think, write.\n       Sold 431 units of 100: 331 buyers wait for an order that cannot be delivered.\n\n",
				"redis  A lease.\n       Sold 100 units of 100, none twice, and turned the other 900 buyers away.\n\n",
				"Promised to be correct and was: redis.\n",
			},
		},
		{
			"a lucky one",
			func(wrong, _ *report.Strategy) { wrong.Verdict, wrong.UnitsSold = "correct", 100 },
			[]string{"It does not promise"},
		},
		{
			"a broken promise is explained",
			func(_, right *report.Strategy) {
				right.Verdict, right.Oversold, right.UnitsSold = "oversold", 1, 101
				right.Findings = []string{"books: I1 oversold by 1"}
			},
			[]string{
				"Sold 101 units of 100: 1 buyer waits for an order", "- books: I1 oversold by 1",
				"Promised to be correct and was not: redis.\n",
			},
		},
		{
			"undersold",
			func(_, right *report.Strategy) {
				right.Verdict, right.Undersold, right.UnitsSold, right.Refused, right.Errors = "undersold", 5, 95, 900, 5
			},
			[]string{"Sold 95 units of 100 and let 905 buyers go without one while units were left."},
		},
		{
			"books and buyers disagree",
			func(wrong, _ *report.Strategy) {
				wrong.Verdict, wrong.UnitsSold = "inconsistent", 100
				wrong.Findings = []string{"lost order: o-1"}
			},
			[]string{"disagree", "- lost order: o-1"},
		},
		{
			"nobody was turned away",
			func(_, right *report.Strategy) { right.UnitsSold, right.Refused = 60, 0 },
			[]string{"Sold 60 units of 100, none twice, and turned nobody away."},
		},
		{
			"buyers without an answer were turned away, and the promise was not kept",
			func(_, right *report.Strategy) { right.UnitsSold, right.Refused, right.Errors = 60, 0, 3 },
			[]string{
				"Sold 60 units of 100, none twice, and turned 3 buyers away.\n",
				"3 buyers were told neither of an order nor that it is sold out.\n",
				"\nPromised to be correct, but left buyers without an answer: redis (3 buyers).\n",
			},
		},
		{
			"wrong and without an answer",
			func(wrong, right *report.Strategy) {
				wrong.PromisesCorrect, wrong.Errors, right.Errors = true, 7, 1
			},
			[]string{
				"7 buyers were told neither", "1 buyer was told neither", "turned 901 buyers away",
				"\nPromised to be correct and was not: none.\nPromised to be correct, but left buyers without an answer: redis (1 buyer).\n",
			},
		},
		{
			"errors and retries are told",
			func(_, right *report.Strategy) {
				right.Errors, right.Retries = 3, 1200
				right.Notes = []string{"3 without a definite answer: no answer in time"}
			},
			[]string{"- 3 without a definite answer: no answer in time", "- buyers asked again 1,200 times"},
		},
		{
			"no promise at all",
			func(_, right *report.Strategy) { right.PromisesCorrect = false },
			[]string{"None of these strategies promises to be correct."},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wrong, right := none(), redis()
			tt.change(&wrong, &right)
			var b bytes.Buffer
			p := report.Printer{Out: &b}
			if err := p.Explain(report.Report{Strategies: []report.Strategy{wrong, right}}); err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(b.String(), want) {
					t.Errorf("got:\n%s\nwant in it: %q", b.String(), want)
				}
			}
		})
	}
}

func TestReport_WriteJSON(t *testing.T) {
	t.Parallel()
	r := report.Report{Machine: report.Machine{OS: "linux"}, Strategies: []report.Strategy{none(), redis()}}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var back report.Report
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if got := r.Broken(); got != nil {
		t.Errorf("broken promises: got %v, want none", got)
	}
	r.Strategies[1].Errors = 1
	if diff := cmp.Diff([]string{"redis"}, r.Broken()); diff != "" {
		t.Errorf("broken promises (-want +got):\n%s", diff)
	}
}

package main

import (
	"bytes"
	"strings"
	"testing"
)

// "Figures are medians over the rounds; ratios are taken within each round first"
func TestCaseReport_print(t *testing.T) {
	t.Parallel()
	rates := func(all ...float64) (rounds []round) {
		for _, v := range all {
			rounds = append(rounds, round{OrdersPerSecond: v, P50: 1000 / v})
		}
		return rounds
	}
	c := &caseReport{Name: "hot", About: "a case", Rows: []*row{
		{Name: "redis", Rounds: rates(100, 10, 200)},
		{Name: "conditional", Rounds: rates(300, 40, 600)},
		{Name: nothing, Rounds: rates(1000, 100, 2000)},
	}}
	for _, want := range []struct {
		byDelay bool
		line    string
	}{
		{false, "conditional 300 0 0.30 3.00 1.00 3.33 ms 0.00 ms 0 0% 0% yes"},
		{true, "conditional 300 0 3.33 0.33 1.00 3.33 ms 0.00 ms 0 0% 0% yes"},
	} {
		c.byDelay = want.byDelay
		if got := printed(c); !strings.Contains(got, want.line) {
			t.Errorf("by delay %v: got\n%s\nwant %s", want.byDelay, got, want.line)
		}
	}
}

// What went wrong in any round is told below the table, and makes the case wrong.
func TestCaseReport_right(t *testing.T) {
	t.Parallel()
	c := &caseReport{Name: "hot", Rows: []*row{{Name: "redis", Rounds: []round{{}, {Wrong: "9 orders in the books", Errors: 3, FirstError: "answer 503"}}}}}
	if got, want := printed(c), "3 0% 0% NO redis: WRONG: 9 orders in the books redis: first error: answer 503"; !strings.Contains(got, want) || c.right() {
		t.Errorf("got right %v and\n%s\nwant %q", c.right(), got, want)
	}
}

func TestCaseReport_printGrowth(t *testing.T) {
	t.Parallel()
	c := &caseReport{Name: "grow", grows: true, Rows: []*row{
		{Name: "redis", Buyers: 1000, Rounds: []round{{IdleBytes: 10 << 20, PeakBytes: 10<<20 + 1000*20<<10}}},
		{Name: "redis", Buyers: 10, Rounds: []round{{IdleBytes: 10 << 20, PeakBytes: 11 << 20}}},
	}}
	got := printed(c)
	for _, want := range []string{"1,000 redis 0 0.00 ms 0.00 ms 0.00 ms 10.0 MB 29.5 MB 20.0 KB 0 yes", "10 redis 0 0.00 ms 0.00 ms 0.00 ms 10.0 MB 11.0 MB - 0 yes"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q", got, want)
		}
	}
}

// printed is the table with single blanks.
func printed(c *caseReport) string {
	var out bytes.Buffer
	c.print(&out)
	return strings.Join(strings.Fields(out.String()), " ")
}

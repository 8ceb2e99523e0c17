package page_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/report/page"
)

// A race of several SKUs shows each by itself, what was wanted, how requests waited
// for the lock, and what the load test cost.
func TestWrite_daily(t *testing.T) {
	t.Parallel()
	r := example()
	r.Run.Wanted, r.Run.Rate = "50 orders per second are due", 50
	r.Harness = &report.Harness{CPUSeconds: 2, CPUShare: 0.25, PeakMemoryMB: 70}
	s := &r.Strategies[1]
	s.SKUs = []report.SKU{{SKU: "cup", Supplied: 5, UnitsSold: 5, Verdict: "correct"}, {SKU: "mug", Supplied: 5, UnitsSold: 7, Oversold: 2, Verdict: "oversold"}}
	s.Locks = &report.Locks{Requests: 9, WaitMS: report.LatencyMS{P50: 12, P99: 40}, HandOvers: 3, HandOverMS: report.LatencyMS{P50: 2, P99: 3}, Overlaps: 4}
	var b bytes.Buffer
	if err := page.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	elements := parse(t, b.Bytes())
	all := words(elements[0])
	for _, want := range []string{
		"50 orders per second are due, from", "Waits count from the moment an order was due.",
		"The lock: half of the requests waited 12ms for it and 99 of 100 at most 40ms",
		"4 requests had it before the holder before had committed", "the load test alone used 2.0 s of CPU, 25 % of this machine",
		"Each SKU by itself",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("want %q in\n%s", want, all)
		}
	}
	if !slices.ContainsFunc(elements, func(n *html.Node) bool { return n.Data == "tr" && words(n) == "mug 5 7 2 0 0 oversold" }) {
		t.Errorf("want a row of the mug in\n%s", all)
	}
}

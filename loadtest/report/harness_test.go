package report_test

import (
	"bytes"
	"strings"
	"testing"

	"example.com/shop/loadtest/report"
)

// What the harness cost stands below the table, and says honestly what is in it.
func TestHarness_Says(t *testing.T) {
	t.Parallel()
	h := report.Harness{CPUSeconds: 3.21, CPUShare: 0.164, PeakMemoryMB: 85.4}
	for shops, want := range map[bool]string{
		false: "he load test alone used 3.2 s of CPU, 16 % of this machine, and at most 85 MB of memory",
		true:  "he load test with the shops that it runs used 3.2 s of CPU",
	} {
		h.WithShops = shops
		var b bytes.Buffer
		if err := (report.Printer{Out: &b}).Table(report.Report{Strategies: []report.Strategy{none()}, Harness: &h}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
			t.Errorf("got\n%s\nwant below it: %q", b.String(), want)
		}
	}
}

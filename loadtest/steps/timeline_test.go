package steps

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func example() Play {
	at := func(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
	return Play{
		Scenario: "late-release", Strategy: "get-then-del", Stock: 2, Sold: 3, Wrong: 5,
		Outcome: "3 of 2 units sold, 1 too many.", Why: "A sent its DEL late.", Remedy: "redis compares and deletes in one script.",
		Events: []Event{
			{at(0.7), A, HTTP, "POST /v1/orders", ""},
			{at(2.5), A, Redis, "SET wrong:get-then-del:sku:mug DQ4YXE… NX PX 1000", "OK"},
			{at(2.9), A, Step, "lock-held", ""},
			{at(9.1), A, Schedule, "process paused (SIGSTOP)", ""},
			{at(1298.3), B, Step, "read", "1 unit"},
			{at(1299.9), A, Redis, "DEL wrong:get-then-del:sku:mug", "1"},
			{at(1308.2), B, SQL, "UPDATE skus SET available=0,reserved=2 WHERE name = mug", "1 row"},
			{at(1308.9), B, SQL, "COMMIT", "OK"},
			{at(1309.1), B, HTTP, "201: order placed", ""},
		},
	}
}

// How often it ended so is told of the plays that did, and not of all.
func TestPrinter_Short(t *testing.T) {
	t.Parallel()
	passed := example()
	passed.Passed = true
	for _, c := range []struct {
		failed        Play
		times, unlike int
		want          string
	}{
		{example(), 1, 0, "get-then-del fails in late-release, once"},
		{example(), 20, 0, "get-then-del fails in late-release, 20 times of 20"},
		{passed, 1, 1, "get-then-del should fail in late-release and did not, once"},
		{passed, 20, 1, "get-then-del should fail in late-release and did not, 1 time of 20"},
		{passed, 20, 3, "get-then-del should fail in late-release and did not, 3 times of 20"},
	} {
		var got bytes.Buffer
		if err := (Printer{Out: &got}).Short(c.failed, example(), c.times, c.unlike); err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(got.String(), "\n"); first != c.want {
			t.Errorf("got %q, want %q", first, c.want)
		}
	}
}

// A timeline, as it is printed; -rewrite writes it anew.
func TestPrinter_Whole(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	if err := (Printer{Out: &got}).Whole(example()); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/whole.txt"
	if *rewrite {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for line := range strings.Lines(got.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns, want at most 100: %s", n, line)
		}
	}
	if strings.Contains(got.String(), "\x1b") {
		t.Error("coloured, though nobody asked")
	}
	var coloured bytes.Buffer
	if err := (Printer{Out: &coloured, Colour: true}).Whole(example()); err != nil || !strings.Contains(coloured.String(), "\x1b[31;1m") {
		t.Errorf("%v, got %q, want the mistake in red", err, coloured.String())
	}
}

func TestTogether(t *testing.T) {
	t.Parallel()
	ask := Event{Actor: B, Kind: Redis, Text: "SET a", Answer: "nil"}
	got := together([]Event{
		ask, ask, {Actor: A, Kind: Redis, Text: "SET a", Answer: "OK"}, ask,
		{Actor: B, Kind: SQL, Text: "INSERT INTO orders", Answer: "1 row"},
		{Actor: B, Kind: SQL, Text: "INSERT INTO movements", Answer: "1 row"}, ask,
	})
	want := []Event{
		{Actor: B, Kind: Redis, Text: "SET a", Answer: "nil (3 times)"},
		{Actor: A, Kind: Redis, Text: "SET a", Answer: "OK"},
		{Actor: B, Kind: SQL, Text: "INSERT INTO orders, movements", Answer: "1 row"}, ask,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

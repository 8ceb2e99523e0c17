package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/shop/internal/logs/logbook"
	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/report"
)

// A day in a shop: several SKUs, carts, cancellations, orders sent twice. Who
// promises is correct, each SKU by itself, and every repeat is one order.
func TestRun_daily(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	var stdout, stderr logbook.Book
	code := run(t.Context(), []string{
		"--strategies", "none,redis,lanes,optimistic", "--requests", "240", "--buyers", "24", "--stock", "30", "--skus", "4", "--skew", "1",
		"--lines", "3", "--cancel", "0.2", "--retry", "0.3", "--json", file,
	}, noEnv, &stdout, &stderr)
	if code != cli.OK {
		t.Fatalf("exit code: got %d, want %d; stderr:\n%s\n%s", code, cli.OK, stderr.String(), stdout.String())
	}
	r := readReport(t, file)
	if got := r.Run; got.Requests != 240 || got.SKUs != 4 || got.Lines != 3 || got.Skew != 1 || got.Cancel != 0.2 || got.Retry != 0.3 || got.Wanted == "" {
		t.Errorf("run: got %+v, want what was asked for", got)
	}
	for _, s := range r.Strategies {
		if s.Acknowledged+s.Refused != 240 || s.Errors != 0 {
			t.Errorf("%s: got %d orders, %d refused, %d errors, want 240 in all and no errors", s.Name, s.Acknowledged, s.Refused, s.Errors)
		}
		if s.Replays == 0 || s.Cancelled == 0 || s.Supplied != 120 {
			t.Errorf("%s: got %d replays, %d cancelled, %d supplied, want some, some, 120", s.Name, s.Replays, s.Cancelled, s.Supplied)
		}
		addsUp(t, s)
		if s.PromisesCorrect && !s.Correct() {
			t.Errorf("%s: got %+v, want it to be correct", s.Name, s)
		}
		if s.Name == "none" && s.Verdict != "oversold" {
			t.Errorf("none: got %s, want it to oversell", s.Verdict)
		}
		if s.Name == "lanes" && (s.Locks == nil || s.Locks.Requests < s.Acknowledged-s.Replays || s.Locks.Overlaps > 0) {
			t.Errorf("lanes: locks: got %+v, want those of all %d orders but %d replays, and no overlap", s.Locks, s.Acknowledged, s.Replays)
		}
		if s.Name == "redis" && (s.Locks == nil || s.Locks.Requests == 0 || s.Locks.HandOvers == 0 || s.Locks.Overlaps > 0) {
			t.Errorf("redis: locks: got %+v, want hand-overs and no overlap", s.Locks)
		}
	}
	for line := range strings.Lines(stdout.String()) {
		if got := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); got > report.Width || strings.HasSuffix(line, " \n") {
			t.Errorf("stdout: got a line of %d columns, want at most %d and no blank at its end: %q", got, report.Width, line)
		}
	}
	for _, want := range []string{"24 buyers want carts of 1 to 3 SKUs, of 4 SKUs with 30 units each, again and again, up to 240", "sent again with the same key", "The lock: half"} {
		if !stdout.Has(want) {
			t.Errorf("stdout: want %q in\n%s", want, stdout.String())
		}
	}
}

// "oversold is the sum over SKUs of the positive differences, never netted".
func addsUp(t *testing.T, s report.Strategy) {
	t.Helper()
	var units, oversold, undersold int64
	for _, sku := range s.SKUs {
		units += sku.UnitsSold
		oversold += max(0, sku.UnitsSold-sku.Supplied)
		undersold += sku.Undersold
	}
	if len(s.SKUs) != 4 || units != s.UnitsSold || oversold != s.Oversold || undersold != s.Undersold {
		t.Errorf("%s: got %d units sold, %d oversold, %d undersold over %+v", s.Name, s.UnitsSold, s.Oversold, s.Undersold, s.SKUs)
	}
}

// An open race on a shop that is too slow for it: what was not sent is said and
// fails the run.
func TestRun_rateTooHigh(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	var stdout logbook.Book
	code := run(t.Context(), []string{
		"--strategies", "redis", "--rate", "1000", "--requests", "50", "--buyers", "1", "--think", "200ms", "--json", file,
	}, noEnv, &stdout, io.Discard)
	s := readReport(t, file).Strategies[0]
	if code != cli.Broken || s.Unsent == 0 || s.Errors != s.Unsent || s.Acknowledged+s.Unsent != 50 || !s.Correct() {
		t.Errorf("got exit code %d, %+v; want 1, some unsent and all others placed", code, s)
	}
	if want := "orders were due while all buyers waited for answers, and were not sent"; !strings.Contains(strings.Join(strings.Fields(stdout.String()), " "), want) {
		t.Errorf("stdout: want %q in\n%s", want, stdout.String())
	}
}

package page_test

import (
	"bytes"
	"testing"
	"time"

	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/report/page"
)

func write(t *testing.T, r report.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := page.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// example is a report with everything that a page can show.
func example() report.Report {
	return report.Report{
		StartedAt: time.Date(2026, 5, 4, 12, 30, 0, 0, time.UTC),
		Machine: report.Machine{
			OS: "linux", Arch: "amd64", CPUs: 8, CPUModel: "Some Processor", Go: "go1.26", Commit: "0123abcd",
			Database: "SQLite, embedded", DatabaseVersion: "SQLite 3.50.1", Redis: "Redis at cache:6379", RedisVersion: "Redis 8.0.2",
		},
		Run: report.Run{
			Buyers: 1000, Stock: 100, Instances: 3, ThinkMS: 2, Command: "go run ./loadtest --strategies none,redis,slow",
		},
		Strategies: []report.Strategy{none(), redis(), slow()},
	}
}

func none() report.Strategy {
	wrote := func(n int64) *int64 { return &n }
	return report.Strategy{
		Name: "none", Lesson: "Read, think, write.", Supplied: 100, Orders: 431, UnitsSold: 431, Oversold: 331,
		Acknowledged: 431, Refused: 569, Seconds: 0.53, OrdersPerSecond: 812.3, RefusalsPerSecond: 1072.4,
		LatencyMS: report.LatencyMS{P50: 212.4, P90: 400, P99: 498.6, Max: 530}, Verdict: "oversold",
		Waits:   waits(3, 212.4, 400, 498.6, 530),
		Answers: report.Answers{SliceMS: 106, Orders: []int64{1, 200, 230, 0, 0}, Refusals: []int64{0, 0, 0, 269, 300}},
		Timeline: &report.Timeline{
			Requests: []report.Request{
				{Buyer: "buyer-17", Accepted: true, Seen: 100, Wrote: wrote(99), Read: 900, Writing: 3000, Written: 3500, Committed: 4000},
				{Buyer: "buyer-18", Accepted: true, Seen: 100, Wrote: wrote(99), Begun: 200, Read: 1000, Writing: 3100, Written: 4500, Committed: 5200},
				{Buyer: "buyer-3", Seen: 0, Begun: 100, Read: 5100},
			},
			Pair: []int{0, 1},
		},
	}
}

func redis() report.Strategy {
	return report.Strategy{
		Name: "redis", PromisesCorrect: true, Lesson: "A lease.", Supplied: 100, Orders: 100, UnitsSold: 100,
		Acknowledged: 100, Refused: 900, Retries: 7, OrdersPerSecond: 140, RefusalsPerSecond: 1260,
		LatencyMS: report.LatencyMS{P50: 9.44, P90: 700, P99: 12345, Max: 13000}, Verdict: "correct",
		Waits:   waits(3, 9.44, 700, 12345, 13000),
		Answers: report.Answers{SliceMS: 6500, Orders: []int64{100, 0}, Refusals: []int64{450, 450}},
		Notes:   []string{"a note & more"},
		Timeline: &report.Timeline{Requests: []report.Request{
			{Buyer: "buyer-1", Accepted: true, Seen: 100, LockAsked: 10, LockHeld: 500, Read: 800, Writing: 2800, Written: 3000, Committed: 3400, Released: 3600},
			{Buyer: "buyer-2", Accepted: true, Seen: 99, LockAsked: 20, LockHeld: 3600, Read: 3900, Writing: 5900, Written: 6000, Committed: 6300, Released: 6600},
		}},
	}
}

func slow() report.Strategy {
	return report.Strategy{
		Name: "slow", Lesson: "Gives up early.", Supplied: 100, Orders: 60, UnitsSold: 60, Undersold: 40, Acknowledged: 60,
		Errors: 940, Verdict: "undersold", Notes: []string{"940 without a definite answer: no answer in time"},
	}
}

// waits is a curve through these milliseconds.
func waits(p0, p50, p90, p99, longest float64) []report.Wait {
	return []report.Wait{
		{Percentile: 0, MS: p0}, {Percentile: 50, MS: p50}, {Percentile: 90, MS: p90},
		{Percentile: 99, MS: p99}, {Percentile: 100, MS: longest},
	}
}

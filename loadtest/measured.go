package main

import (
	"fmt"
	"math"
	"time"

	"example.com/shop/loadtest/buyers"
	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/shopclient"
)

// measured is what the buyers' log says without a look at the books.
func measured(how shopclient.Strategy, log buyers.Log) report.Strategy {
	seconds := log.Took.Seconds()
	ordered, refused, unknown := log.Count(buyers.Ordered), log.Count(buyers.Refused), log.Count(buyers.Unknown)
	return report.Strategy{
		Name:              how.Name,
		PromisesCorrect:   how.PromisesCorrect,
		Lesson:            how.Lesson,
		Acknowledged:      ordered,
		Refused:           refused,
		Errors:            log.Count(buyers.Failed) + unknown + log.Unsent,
		Unknown:           unknown,
		Unsent:            log.Unsent,
		Retries:           log.Retries(),
		Replays:           log.CountAgain(buyers.Same),
		Cancelled:         log.CountCancel(buyers.Cancelled),
		Seconds:           log.Took.Round(time.Microsecond).Seconds(),
		OrdersPerSecond:   round(float64(ordered) / seconds),
		RefusalsPerSecond: round(float64(refused) / seconds),
		LatencyMS:         latency(log.Latencies()),
		Waits:             curve(log),
		Answers:           answers(log),
		Findings:          []string{},
		Notes:             notes(log),
	}
}

func latency(p buyers.Percentiles) report.LatencyMS {
	return report.LatencyMS{
		P50: report.Milliseconds(p.P50), P90: report.Milliseconds(p.P90),
		P99: report.Milliseconds(p.P99), Max: report.Milliseconds(p.Max),
	}
}

// notes say why orders came to nothing, as far as the shop did not say sold out.
func notes(log buyers.Log) []string {
	lines := []string{}
	if log.Unsent > 0 {
		lines = append(lines, fmt.Sprintf("%d orders were due while all buyers waited for answers, and were not sent: more than the shop serves, or too few --buyers", log.Unsent))
	}
	if n := log.CountAgain(buyers.Unanswered); n > 0 {
		lines = append(lines, fmt.Sprintf("%d orders that were sent again brought no definite answer the second time", n))
	}
	if n := log.CountUncancelled(); n > 0 {
		lines = append(lines, fmt.Sprintf("%d cancellations were refused or not answered", n))
	}
	for i, reason := range log.Reasons() {
		if i == fewReasons {
			return append(lines, "... and other reasons")
		}
		lines = append(lines, fmt.Sprintf("%d without a definite answer: %s", reason.Buyers, reason.Text))
	}
	return lines
}

// fewReasons is how many different reasons for errors are told.
const fewReasons = 5

// round keeps one digit, more than a rate is worth.
func round(rate float64) float64 { return math.Round(rate*10) / 10 }

// lockTimes is nil if the strategy has no lock, or the shop told no steps.
func lockTimes(traces *buyers.Traces) *report.Locks {
	l := traces.Locks()
	if l == nil {
		return nil
	}
	return &report.Locks{
		Requests: l.Requests, WaitMS: latency(l.Wait), HoldMS: latency(l.Hold),
		HandOvers: l.HandOvers, HandOverMS: latency(l.HandOver), Overlaps: l.Overlaps,
	}
}

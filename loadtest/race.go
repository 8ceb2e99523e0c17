package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"example.com/shop/loadtest/buyers"
	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/verdict"
)

// buying is the limit of one try to buy. A shop gives up by itself before that,
// and its own answer says more than silence.
const buying = 45 * time.Second

// race holds the race of one strategy, in shops of its own, and judges it.
func (l lab) race(ctx context.Context, how shopclient.Strategy) (result report.Strategy, err error) {
	set, err := l.source(l.instances()).Open(ctx)
	if err != nil {
		return report.Strategy{}, err
	}
	defer func() { err = errors.Join(err, set.Close()) }()

	conns := shopclient.NewConnections(1, asking)
	defer conns.CloseIdleConnections()
	operator := shopclient.New(set.URLs[0], conns)
	race := buyers.Race{
		Shops:          set.URLs,
		Strategy:       how.Name,
		SKU:            freshSKU(how.Name),
		Buyers:         l.Buyers,
		Think:          l.Think,
		RequestTimeout: buying,
		Timeout:        l.Timeout,
		Retry:          buyers.DefaultRetry(),
		Tally:          new(buyers.Tally),
	}
	if err := operator.Create(ctx, race.SKU, l.Stock); err != nil {
		return report.Strategy{}, err
	}
	stop := l.screen.watch(how.Name, l.Buyers, race.Tally)
	log, err := race.Run(ctx)
	stop()
	if err != nil {
		return report.Strategy{}, err
	}
	lost, err := race.Recheck(ctx, log)
	if err != nil {
		return report.Strategy{}, fmt.Errorf("recheck: %w", err)
	}
	audit := func(ctx context.Context) (shopclient.Audit, error) { return operator.Audit(ctx, race.SKU) }
	if log.Count(buyers.Unknown) > 0 {
		audit = settled(audit)
	}
	books, err := audit(ctx)
	if err != nil {
		return report.Strategy{}, fmt.Errorf("audit: %w", err)
	}
	judged := verdict.Judge(ledger(books), told(l.Stock, log, lost))
	result = measured(how, log)
	result.SKU, result.Supplied, result.Orders, result.UnitsSold = race.SKU, l.Stock, books.Books.Orders, books.Books.OrderedUnits
	result.Oversold, result.Undersold, result.Verdict = judged.Oversold, judged.Undersold, string(judged.Verdict)
	result.Findings = append(result.Findings, judged.Findings...)
	result.Notes = append(result.Notes, judged.Notes...)
	return result, nil
}

// freshSKU names a SKU that no earlier race has sold from.
func freshSKU(strategy string) string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return "lab-" + strategy + "-" + hex.EncodeToString(b[:])
}

// ledger is the shop's side of the story.
func ledger(a shopclient.Audit) verdict.Books {
	books := verdict.Books{
		Supplied: a.Books.Supplied,
		Orders:   a.Books.Orders,
		Units:    a.Books.OrderedUnits,
		Oversold: a.Books.Oversold,
	}
	for _, d := range a.Differences {
		text := d.Invariant + " " + d.Detail
		if d.OrderID != "" {
			text += " (order " + d.OrderID + ")"
		}
		books.Differences = append(books.Differences, text)
	}
	if !a.OK && len(a.Differences) == 0 {
		books.Differences = []string{"the audit failed, but names no difference"}
	}
	return books
}

// told is the buyers' side of the story.
func told(supplied int64, log buyers.Log, lost []buyers.Lost) verdict.Told {
	t := verdict.Told{
		Supplied: supplied,
		Orders:   log.Count(buyers.Ordered),
		Refused:  log.Count(buyers.Refused),
		Failed:   log.Count(buyers.Failed),
		Unknown:  log.Count(buyers.Unknown),
		Repeated: log.Repeated(),
	}
	for _, l := range lost {
		t.Lost = append(t.Lost, fmt.Sprintf("%s of %s: %s", l.OrderID, l.Buyer, l.Why))
	}
	return t
}

// measured is what the buyers' log says without a look at the books.
func measured(how shopclient.Strategy, log buyers.Log) report.Strategy {
	seconds := log.Took.Seconds()
	ordered, refused, unknown := log.Count(buyers.Ordered), log.Count(buyers.Refused), log.Count(buyers.Unknown)
	wait := log.Latencies()
	s := report.Strategy{
		Name:              how.Name,
		PromisesCorrect:   how.PromisesCorrect,
		Lesson:            how.Lesson,
		Acknowledged:      ordered,
		Refused:           refused,
		Errors:            log.Count(buyers.Failed) + unknown,
		Unknown:           unknown,
		Retries:           log.Retries(),
		Seconds:           log.Took.Round(time.Microsecond).Seconds(),
		OrdersPerSecond:   round(float64(ordered) / seconds),
		RefusalsPerSecond: round(float64(refused) / seconds),
		LatencyMS: report.LatencyMS{
			P50: report.Milliseconds(wait.P50),
			P90: report.Milliseconds(wait.P90),
			P99: report.Milliseconds(wait.P99),
			Max: report.Milliseconds(wait.Max),
		},
		Findings: []string{},
		Notes:    []string{},
	}
	for i, reason := range log.Reasons() {
		if i == fewReasons {
			s.Notes = append(s.Notes, "... and other reasons")
			break
		}
		s.Notes = append(s.Notes, fmt.Sprintf("%d without a definite answer: %s", reason.Buyers, reason.Text))
	}
	return s
}

// fewReasons is how many different reasons for errors are told.
const fewReasons = 5

// round keeps one digit, more than a rate is worth.
func round(rate float64) float64 { return math.Round(rate*10) / 10 }

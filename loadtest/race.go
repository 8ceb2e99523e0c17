package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"example.com/shop/loadtest/buyers"
	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/shopclient"
)

// race holds the race of one strategy, in shops of its own, and judges it.
func (l lab) race(ctx context.Context, how shopclient.Strategy) (result report.Strategy, err error) {
	set, err := l.source(l.instances()).Open(ctx)
	if err != nil {
		return report.Strategy{}, err
	}
	defer func() { err = cleanup.Join(err, set.Close()) }()

	conns := shopclient.NewConnections(1, asking)
	defer conns.CloseIdleConnections()
	operator := shopclient.New(set.URLs[0], conns)
	race := l.raceOf(how.Name, set.URLs)
	for _, sku := range race.SKUs {
		if err := operator.Create(ctx, sku, l.Stock); err != nil {
			return report.Strategy{}, err
		}
	}
	stop := l.watch(how.Name, l.Buyers, race.Tally)
	log, err := race.Run(ctx)
	stop()
	if err != nil {
		return report.Strategy{}, err
	}
	late := log.Count(buyers.Unknown) + log.CountCancel(buyers.Uncancelled)
	books, err := audits(ctx, operator, race.SKUs, late > 0)
	if err != nil {
		return report.Strategy{}, fmt.Errorf("audit: %w", err)
	}
	// Only now: what is still on its way before the books are at rest would be found
	// by one of the two and not by the other.
	lost, err := race.Recheck(ctx, log)
	if err != nil {
		return report.Strategy{}, fmt.Errorf("recheck: %w", err)
	}
	result = measured(how, log)
	result.Timeline, result.Locks = timeline(race.Traces), lockTimes(race.Traces)
	judge(&result, l.Stock, l.Lines > 1, books, told(race.SKUs, l.Stock, log, lost))
	return result, nil
}

// raceOf is a race on fresh SKUs.
func (l lab) raceOf(strategy string, urls []string) buyers.Race {
	return buyers.Race{
		Shops:          urls,
		Strategy:       strategy,
		SKUs:           freshSKUs(strategy, l.SKUs),
		Skew:           l.Skew,
		Lines:          l.Lines,
		Buyers:         l.Buyers,
		Think:          l.Think,
		Pace:           l.pace(),
		Cancel:         l.Cancel,
		Again:          l.Retry,
		RequestTimeout: buying,
		Timeout:        l.Timeout,
		Retry:          buyers.DefaultRetry(),
		Ready:          l.ready,
		Tally:          new(buyers.Tally),
		Traces:         new(buyers.Traces),
	}
}

// freshSKUs names SKUs that no earlier race has sold from.
func freshSKUs(strategy string, n int) []string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	name := "lab-" + strategy + "-" + hex.EncodeToString(b[:])
	if n == 1 {
		return []string{name}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", name, i+1)
	}
	return names
}

// audits asks for the books of each SKU, until they do not change any more where
// orders or cancellations may still be on their way.
func audits(ctx context.Context, operator *shopclient.Client, skus []string, settle bool) ([]shopclient.Audit, error) {
	var all []shopclient.Audit
	for _, sku := range skus {
		audit := func(ctx context.Context) (shopclient.Audit, error) { return operator.Audit(ctx, sku) }
		if settle {
			audit = settled(audit)
		}
		books, err := audit(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, books)
	}
	return all, nil
}

// buying is the limit of one try to buy. A shop gives up by itself before that,
// and its own answer says more than silence.
const buying = 45 * time.Second

package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

// run is one run of the benchmark.
type run struct {
	*environment
	name     string // begins the names of its SKUs
	own      *fleet
	other    *fleet           // nil without --against
	handlers []*shops.Process // that do nothing
	conns    *http.Client
	loads    int // so far: makes names that are new
}

// newRun starts the servers, the shops and the handlers.
func newRun(ctx context.Context, e *environment) (r *run, err error) {
	conns := shopclient.NewConnections(clerks, patience)
	e.Later(func() error { conns.CloseIdleConnections(); return nil })
	r = &run{environment: e, name: time.Now().UTC().Format("bench-20060102-150405"), conns: conns}
	e.say("starting Redis, the database and the shops")
	if err := e.openDatabase(ctx); err != nil {
		return nil, err
	}
	if r.own, err = e.startFleet(ctx, "", e.Shop); err != nil {
		return nil, err
	}
	switch e.Against {
	case "":
	case onGroup:
		r.other, err = e.startFleet(ctx, onGroup, e.Shop)
	default:
		r.other, err = e.startFleet(ctx, "_other", e.Against)
	}
	if err != nil {
		return nil, err
	}
	for range instances {
		handler, err := startNothing(ctx, instances)
		if err != nil {
			return nil, err
		}
		e.Later(handler.Stop)
		r.handlers = append(r.handlers, handler)
	}
	return r, nil
}

// operator speaks to one shop of the fleet. It sees what the others sold: they share the database.
func (r *run) operator(f *fleet) *shopclient.Client { return f.client(r.Strategies[0], r.conns) }

// clerks is how many requests of the operator run at a time.
const clerks = 8

// newSKUs names new SKUs and, for a fleet that is not nil, puts units of each up for sale.
func (r *run) newSKUs(ctx context.Context, f *fleet, n int, units int64) ([]string, error) {
	skus := make([]string, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clerks)
	for i := range skus {
		r.loads++
		skus[i] = fmt.Sprintf("%s-%d", r.name, r.loads)
		if f != nil {
			group.Go(func() error { return r.operator(f).Create(ctx, skus[i], units) })
		}
	}
	return skus, group.Wait()
}

// hold runs a case.
func (r *run) hold(ctx context.Context, c *contest) error {
	if c.crowds != nil {
		return r.grow(ctx, c)
	}
	c.rows = r.lineup(*c)
	for n := range r.Rounds {
		for i := range c.rows {
			who := c.rows[(i+n)%len(c.rows)] // each round begins with another one
			one, err := r.measure(ctx, who, *c, r.Time)
			if err != nil {
				return fmt.Errorf("%s: %w", who.name, err)
			}
			r.say(fmt.Sprintf("%s, round %d of %d: %s: %s answers/s, p50 %s, %d errors",
				c.name, n+1, r.Rounds, who.name, whole(one.AnswersPerSecond), millis(one.LatencyMS.P50), one.Errors))
			who.rounds = append(who.rounds, one)
		}
	}
	return nil
}

// grow lets each number of buyers meet each contestant once.
func (r *run) grow(ctx context.Context, c *contest) error {
	for _, buyers := range c.crowds {
		for _, who := range r.lineup(c.with(buyers)) {
			one, err := r.crowd(ctx, *who, *c)
			if err != nil {
				return fmt.Errorf("%d at %s: %w", buyers, who.name, err)
			}
			r.say(fmt.Sprintf("%s, %d at once: %s: %s answers/s, %d errors", c.name, buyers, who.name, whole(one.AnswersPerSecond), one.Errors))
			who.rounds = []round{one}
			c.rows = append(c.rows, who)
		}
	}
	return nil
}

// crowd lets all buyers come to a process that was started for this and that has answered a few orders, so that the
// memory it gains is theirs.
func (r *run) crowd(ctx context.Context, who row, c contest) (one round, err error) {
	var fresh *shops.Process
	if who.shops == nil {
		fresh, err = startNothing(ctx, 1)
	} else {
		fresh, err = r.startShop(ctx, who.shops, who.strategy, 1)
	}
	if err != nil {
		return round{}, err
	}
	defer func() { err = errors.Join(err, fresh.Stop()) }()
	who.procs = []*shops.Process{fresh}
	first := who
	first.buyers = 1
	one, err = r.measure(ctx, &first, c, 100*time.Millisecond)
	if err != nil || one.Wrong != "" {
		return one, err
	}
	idle, _ := memory(fresh.Pid)
	forgot := forgetPeak(fresh.Pid)
	one, err = r.measure(ctx, &who, c, 0)
	if _, peak := memory(fresh.Pid); forgot == nil {
		one.BuyerBytes = (peak - idle) / int64(who.buyers)
	}
	return one, err
}

// measure puts fresh SKUs up for sale, lets them be bought for this length and compares what the buyers were answered
// with the shop's books.
func (r *run) measure(ctx context.Context, who *row, c contest, length time.Duration) (one round, err error) {
	var pids []int
	for _, p := range who.procs {
		pids = append(pids, p.Pid)
	}
	skus, err := r.newSKUs(ctx, who.shops, max(1, c.skus), c.units)
	if err != nil {
		return round{}, err
	}
	began, client, served := time.Now(), cpu(os.Getpid()), cpu(pids...)
	if one, err = race(ctx, who, c, skus, length); err != nil {
		return round{}, err
	}
	machine := time.Since(began).Seconds() * float64(runtime.NumCPU())
	one.Client = (cpu(os.Getpid()) - client).Seconds() / machine
	one.Shops = (cpu(pids...) - served).Seconds() / machine
	if who.shops == nil {
		return one, nil
	}
	one.Wrong, err = r.check(ctx, who.shops, skus, c.units, one)
	return one, err
}

// check returns what is wrong with the books of these SKUs. The audit is of the one SKU or of the whole shop, since of each
// SKU by itself it would read the orders of all.
func (r *run) check(ctx context.Context, f *fleet, skus []string, supplied int64, one round) (wrong string, err error) {
	shop := r.operator(f)
	audited := skus[0]
	if len(skus) > 1 {
		audited = ""
	}
	audit, err := shop.Audit(ctx, audited)
	if err != nil {
		return "", err
	}
	if !audit.OK {
		return fmt.Sprintf("the audit found %+v", audit.Differences), nil
	}
	var taken atomic.Int64 // units
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clerks)
	for _, sku := range skus {
		group.Go(func() error {
			available, _, err := shop.Stock(ctx, sku)
			taken.Add(supplied - available)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	return disagree(taken.Load(), one), nil
}

// disagree compares the units that the books say were taken with the answers.
func disagree(taken int64, r round) string {
	if taken >= r.Units && taken <= r.Units+r.Unsettled {
		return ""
	}
	return fmt.Sprintf("%d units in the books, %d acknowledged, %d unsettled", taken, r.Units, r.Unsettled)
}

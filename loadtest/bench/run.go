package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"time"

	"example.com/shop/loadtest/child"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/stats"
)

// run is one run of the benchmark.
type run struct {
	*environment
	name     string // begins the names of its SKUs
	lab      shopclient.Lab
	own      *fleet
	other    *fleet           // nil without --against
	handlers []*child.Process // that do nothing
	conns    *http.Client
	loads    int // so far: makes names that are new
}

// newRun starts the servers, the shops and the handlers.
func newRun(ctx context.Context, e *environment) (r *run, err error) {
	conns := shopclient.NewConnections(instances, time.Minute)
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
		r.other, err = e.startFleet(ctx, onGroup, r.own.program)
	default:
		r.other, err = e.startFleet(ctx, "_other", e.Against)
	}
	if err != nil {
		return nil, err
	}
	if r.lab, err = r.operator(r.own).Lab(ctx); err != nil {
		return nil, err
	}
	for _, strategy := range e.Strategies {
		if err := r.try(ctx, strategy); err != nil {
			return nil, fmt.Errorf("%s: %w", strategy, err)
		}
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

// operator speaks to the first shop of the fleet. It sees what the others sold: they share the database.
func (r *run) operator(f *fleet) *shopclient.Client {
	return shopclient.New("http://"+f.procs[0].Addr, r.conns)
}

// newSKU puts units of something new up for sale.
func (r *run) newSKU(ctx context.Context, f *fleet, units int64) (string, error) {
	r.loads++
	sku := fmt.Sprintf("%s-%d", r.name, r.loads)
	return sku, r.operator(f).Create(ctx, sku, units)
}

// try buys one unit by a strategy. It finds out whether the shop has the servers for it.
func (r *run) try(ctx context.Context, strategy string) error {
	sku, err := r.newSKU(ctx, r.own, 1)
	if err != nil {
		return err
	}
	answer, err := r.operator(r.own).Buy(ctx, shopclient.Purchase{
		Buyer: sku, Key: sku, Strategy: strategy, Lines: []shopclient.Line{{SKU: sku, Units: 1}}, Think: -1,
	})
	if err == nil && answer.Order.ID == "" {
		err = fmt.Errorf("a first order: answer %d: %v", answer.Status, answer.Problem)
	}
	return err
}

// hold runs a case.
func (r *run) hold(ctx context.Context, c *contest) error {
	if c.crowds != nil {
		return r.grow(ctx, c)
	}
	c.rows = r.lineup(*c)
	for n := range r.Rounds {
		for _, i := range stats.Rotation(len(c.rows), n) {
			who := c.rows[i]
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
	var fresh *child.Process
	if who.shops == nil {
		fresh, err = startNothing(ctx, 1)
	} else {
		fresh, err = r.startShop(ctx, who.shops, 1)
	}
	if err != nil {
		return round{}, err
	}
	defer func() { err = errors.Join(err, fresh.Stop()) }()
	who.procs = []*child.Process{fresh}
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
	skus := make([]string, max(1, c.skus))
	for i := range skus {
		if skus[i], err = r.newSKU(ctx, cmp.Or(who.shops, r.own), c.units); err != nil {
			return round{}, err
		}
	}
	began, client, shops := time.Now(), cpu(os.Getpid()), cpu(pids...)
	if one, err = race(ctx, who, skus, length); err != nil {
		return round{}, err
	}
	machine := time.Since(began).Seconds() * float64(runtime.NumCPU())
	one.Client = (cpu(os.Getpid()) - client).Seconds() / machine
	one.Shops = (cpu(pids...) - shops).Seconds() / machine
	if who.shops == nil {
		return one, nil
	}
	var orders int64
	for _, sku := range skus {
		audit, err := r.operator(who.shops).Audit(ctx, sku)
		if err != nil {
			return one, err
		}
		if !audit.OK {
			one.Wrong = fmt.Sprintf("the audit found %+v", audit.Differences)
			return one, nil
		}
		orders += audit.Books.Orders
	}
	one.Wrong = disagree(orders, one)
	return one, nil
}

// disagree compares the number of orders in the books with the answers.
func disagree(orders int64, r round) string {
	if orders >= r.Acknowledged && orders <= r.Acknowledged+r.Unknown {
		return ""
	}
	return fmt.Sprintf("%d orders in the books, %d acknowledged, %d unknown", orders, r.Acknowledged, r.Unknown)
}

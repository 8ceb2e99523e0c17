package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

// run is one run of the benchmark, with its servers and shops.
type run struct {
	*Command
	dir   string // removed at the end
	say   func(string)
	conns *http.Client
	shops.Undo

	sql      *mysql.Config // nil for SQLite, as db
	db       *sql.DB
	database string // name, and durability of commits
	own      *fleet
	other    *fleet           // nil without --against
	handlers []*shops.Process // do nothing

	name  string // begins the names of the run's SKUs
	loads int    // number of SKUs so far, for new names
}

// start starts the servers, the shops and the handlers.
func (r *run) start(ctx context.Context) (err error) {
	r.name = time.Now().UTC().Format("bench-20060102-150405")
	r.say("starting Redis, the database and the shops")
	if err := r.openDatabase(ctx); err != nil {
		return err
	}
	if r.own, err = r.startFleet(ctx, "", r.Shop); err != nil {
		return err
	}
	switch r.Against {
	case "":
	case onGroup:
		r.other, err = r.startFleet(ctx, onGroup, r.Shop)
	default:
		r.other, err = r.startFleet(ctx, "_other", r.Against)
	}
	if err != nil {
		return err
	}
	r.handlers, err = r.startAll(ctx, nil, "")
	return err
}

// operator returns a client of one shop of the fleet. It sees the sales of all shops, because they share the database.
func (r *run) operator(f *fleet) *shopclient.Client {
	return f.procs[r.Strategies[0]][0].Client(r.conns)
}

// clerks is the number of concurrent requests of the operator.
const clerks = 8

// newSKUs returns new names of SKUs. If the fleet is not nil, it also puts units of each SKU up for sale.
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

// hold runs a case. Each round begins with another row.
func (r *run) hold(ctx context.Context, c *contest) error {
	c.rows = r.lineup(c)
	rounds, measure := r.Rounds, r.measure
	if c.once {
		rounds, measure = 1, r.crowd
	}
	for n := range rounds {
		for i := range c.rows {
			who := c.rows[(i+n)%len(c.rows)]
			one, err := measure(ctx, *who, *c, r.Time)
			if err != nil {
				return fmt.Errorf("%d buyers at %s: %w", who.buyers, who.name, err)
			}
			r.say(fmt.Sprintf("%s, %d buyers, round %d of %d: %s: %s answers/s, p50 %s, %d errors",
				c.name, who.buyers, n+1, rounds, who.name, whole(one.AnswersPerSecond), millis(one.LatencyMS.P50), one.Errors))
			who.rounds = append(who.rounds, one)
		}
	}
	return nil
}

// crowd is like measure, for buyers who all come once, to a fresh but warm process. The memory that it gains is theirs.
func (r *run) crowd(ctx context.Context, who row, c contest, _ time.Duration) (one round, err error) {
	fresh, err := r.startOne(ctx, who.shops, who.strategy, 1)
	if err != nil {
		return round{}, err
	}
	defer func() { err = errors.Join(err, fresh.Stop()) }()
	who.procs = []*shops.Process{fresh}
	first := who
	first.buyers = 1
	one, err = r.measure(ctx, first, c, 100*time.Millisecond)
	if err != nil || one.Wrong != "" {
		return one, err
	}
	idle, measured := forgetPeak(fresh.Pid)
	one, err = r.measure(ctx, who, c, 0)
	if measured {
		one.BuyerBytes = (peak(fresh.Pid) - idle) / int64(who.buyers)
	}
	return one, err
}

// measure puts fresh SKUs up for sale, sends orders for the given time, and compares the answers with the books.
func (r *run) measure(ctx context.Context, who row, c contest, length time.Duration) (one round, err error) {
	skus, err := r.newSKUs(ctx, who.shops, max(1, c.skus), c.units)
	if err != nil {
		return round{}, err
	}
	one, err = race(ctx, who, c, skus, length)
	if err == nil && who.shops != nil {
		one.Wrong, err = r.check(ctx, who.shops, skus, c.units, one)
	}
	return one, err
}

// check returns the error in the books of these SKUs, or an empty text. For several SKUs it audits the whole shop at once,
// because an audit of each SKU would read the orders of all.
func (r *run) check(ctx context.Context, f *fleet, skus []string, supplied int64, one round) (wrong string, err error) {
	shop, audited := r.operator(f), skus[0]
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
	taken := int64(0) // units
	for _, sku := range skus {
		available, _, err := shop.Stock(ctx, sku)
		if err != nil {
			return "", err
		}
		taken += supplied - available
	}
	return disagree(taken, one), nil
}

// disagree compares the units that were taken by the books with the answers.
func disagree(taken int64, r round) string {
	if taken >= r.Units && taken <= r.Units+r.Unsettled {
		return ""
	}
	return fmt.Sprintf("%d units in the books, %d acknowledged, %d unsettled", taken, r.Units, r.Unsettled)
}

// maxOpen is the number of pending orders that a shop allows to a buyer.
const maxOpen = 10

// patience limits the wait for an answer, and for each buyer's first answer. It exceeds a shop's own limit.
const patience = 2 * time.Minute

// round is the result of a load.
type round struct {
	crowd.Summary
	Longest float64 // wait for an answer, in ms, including the warm-up, in which buyers may starve
	Problem string  // reasons of failed orders; empty if no order failed

	// By the buyers' answers: units of their orders, and units of orders that have an unknown outcome or may be cancelled.
	Units     int64
	Unsettled int64

	BuyerBytes int64  // grow: memory for each buyer, at the peak
	Wrong      string // error in the books; empty for none
}

// race lets a crowd buy. If length is 0, each buyer buys once, all at the same moment. Otherwise each buyer buys again
// and again, and the measurement begins when each buyer has had an answer and a fifth of length has passed. Before
// that, the shop dials its own connections, and a strategy with a long queue has not shown its pace.
func race(ctx context.Context, who row, c contest, skus []string, length time.Duration) (round, error) {
	r := crowd.Race{
		Strategy: who.strategy, Think: -1, Buyers: who.buyers, Duration: length, Timeout: patience,
		SKUs: skus, Skew: c.skew, Least: c.least, Lines: c.lines, Pay: c.pay, Cancel: c.cancel,
		Orders: maxOpen, Tally: new(crowd.Tally),
		// A buyer does not retry after an error, but pauses, so that it does not spin if a shop fails at once.
		RequestTimeout: patience, Patience: crowd.Patience{Tries: 1, Pause: 10 * time.Millisecond, MaxPause: 10 * time.Millisecond},
	}
	for _, p := range who.procs {
		r.Shops = append(r.Shops, p.Client)
	}
	log, err := r.Run(ctx)
	one := round{Summary: log.Summary(), Problem: strings.Join(log.Notes(), "; ")}
	for _, order := range log.Records {
		one.Longest = max(one.Longest, crowd.Milliseconds(order.Latency))
		units := int64(len(order.Lines)) // one unit of each SKU
		switch {
		case order.Outcome == crowd.Unknown, order.Outcome == crowd.Ordered && order.Cancelled:
			one.Unsettled += units
		case order.Outcome == crowd.Ordered:
			one.Units += units
		}
	}
	return one, err
}

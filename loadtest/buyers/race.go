package buyers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/popularity"
)

// Race is what all buyers of one race want and how they go about it.
type Race struct {
	Shops    []string // base URLs; buyers are dealt out to them in turn
	Strategy string
	SKUs     []string // at least one, the most wanted first
	Skew     float64  // Zipf's exponent of how wanted they are; 0 is even
	Lines    int      // an order is of 1 to so many SKUs, one unit each; 0 is 1
	Buyers   int
	Think    time.Duration // of the shop, between reading the stock and writing it
	Pace     Pace          // when they order; the zero value is once, all at the same moment

	Cancel float64 // share of the orders placed that their buyers cancel
	Again  float64 // share of the orders placed that are sent a second time

	RequestTimeout time.Duration // of one try
	Timeout        time.Duration // from the common start, or the end of Pace.Duration; who has no answer by then has none
	Retry          Retry

	// Ready, if not nil, is called when all buyers have connected; they are let go when
	// it returns.
	Ready func(ctx context.Context)

	// Tally, if not nil, counts while the race runs.
	Tally *Tally

	// Traces, if not nil, remembers what the shop said that requests did.
	Traces *Traces
}

// dialling is how many buyers connect at a time, well inside the queue of
// connections that a listener keeps.
const dialling = 100

// Run holds the race and returns what became of each order. It fails if a buyer
// cannot connect, before anything is bought, and if ctx ends, after which the
// log is worth nothing. All connections are closed when it returns.
func (r Race) Run(ctx context.Context) (Log, error) {
	if r.Tally == nil {
		r.Tally = new(Tally)
	}
	if r.Traces == nil {
		r.Traces = new(Traces)
	}
	w := wishes{race: &r, ranks: popularity.Zipf(len(r.SKUs), r.Skew)}
	crowd := make([]*buyer, r.Buyers)
	for i := range crowd {
		crowd[i] = r.newBuyer(i, w)
		defer crowd[i].conns.CloseIdleConnections()
	}
	if err := r.connect(ctx, crowd); err != nil {
		return Log{}, err
	}
	if r.Ready != nil {
		r.Ready(ctx)
	}
	log := r.start(ctx, crowd)
	if ctx.Err() != nil {
		return Log{}, context.Cause(ctx)
	}
	return log, nil
}

func (r Race) connect(ctx context.Context, crowd []*buyer) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dialling)
	for _, b := range crowd {
		group.Go(func() error {
			if err := b.connect(ctx); err != nil {
				return fmt.Errorf("%s of %d cannot connect: %w", b.name, len(crowd), err)
			}
			r.Tally.Connected.Add(1)
			return nil
		})
	}
	return group.Wait()
}

// start lets the buyers go at the race's pace and waits for the last one.
func (r Race) start(ctx context.Context, crowd []*buyer) Log {
	d := newDesk(r)
	switch {
	case r.Pace.Rate > 0:
		d.arrive(ctx, crowd)
	case r.Pace == Pace{}:
		d.atOnce(ctx, crowd, func(ctx context.Context, b *buyer) { d.buy(ctx, b, d.start) })
	default:
		d.atOnce(ctx, crowd, d.loop)
	}
	return Log{Took: d.took(), Records: d.records, Unsent: d.unsent}
}

// took is the time to the last answer, without what became of the orders later.
func (d *desk) took() time.Duration {
	if len(d.records) == 0 {
		return time.Since(d.start)
	}
	return slices.MaxFunc(d.records, func(a, b Record) int { return cmp.Compare(a.Ended, b.Ended) }).Ended
}

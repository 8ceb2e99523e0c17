package buyers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Race is what all buyers of one race want, one unit of a SKU each, and how they
// go about it.
type Race struct {
	Shops    []string // base URLs; buyers are dealt out to them in turn
	Strategy string
	SKU      string
	Buyers   int
	Think    time.Duration // of the shop, between reading the stock and writing it

	RequestTimeout time.Duration // of one try
	Timeout        time.Duration // from the common start; who has no answer by then has none
	Retry          Retry

	// Tally, if not nil, counts while the race runs.
	Tally *Tally
}

// dialling is how many buyers connect at a time, well inside the queue of
// connections that a listener keeps.
const dialling = 100

// Run holds the race and returns what became of each buyer. It fails if a buyer
// cannot connect, before anything is bought, and if ctx ends, after which the
// log is worth nothing. All connections are closed when it returns.
func (r Race) Run(ctx context.Context) (Log, error) {
	if r.Tally == nil {
		r.Tally = new(Tally)
	}
	crowd := make([]*buyer, r.Buyers)
	for i := range crowd {
		crowd[i] = r.newBuyer(i)
		defer crowd[i].conns.CloseIdleConnections()
	}
	if err := r.connect(ctx, crowd); err != nil {
		return Log{}, err
	}
	log := r.release(ctx, crowd)
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

// release lets all buyers go at once and waits for the last one.
func (r Race) release(ctx context.Context, crowd []*buyer) Log {
	var ready, done sync.WaitGroup
	barrier := make(chan struct{})
	records := make([]Record, len(crowd))

	// Both are set before the barrier opens, which is what the buyers wait for.
	var start time.Time
	var cancel context.CancelFunc

	ready.Add(len(crowd))
	for i, b := range crowd {
		done.Go(func() {
			ready.Done()
			<-barrier
			records[i] = b.buy(ctx, start)
			r.Tally.add(records[i])
		})
	}
	ready.Wait()
	ctx, cancel = context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	start = time.Now()
	close(barrier)
	done.Wait()
	return Log{Took: time.Since(start), Records: records}
}

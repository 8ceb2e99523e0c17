package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"example.com/shop/loadtest/popularity"
)

// dialling is how many connections are opened at a time: a listener's queue is
// bounded.
const dialling = 64

// Load is who buys what from whom.
type Load struct {
	Shops    []string        // host:port of each; the buyers are dealt out to them
	Strategy string          // that the shops are asked for; empty for none
	Buyers   int             // at least 1
	Pick     popularity.Pick // which SKU each order is for
	Name     string          // letters, digits and '-'; makes buyers and keys unlike those of any other load
	Patience time.Duration   // longest for one answer
}

// Loop lets the buyers buy until each had an answer, for warm at least, and then
// for length, which is what counts. It returns when the last one has its answer.
func (l Load) Loop(ctx context.Context, warm, length time.Duration) (Counts, error) {
	buyers, err := l.connect(ctx)
	defer closeAll(buyers)
	if err != nil {
		return Counts{}, err
	}
	c := newClock(len(buyers), warm, length)
	run(buyers, func(b *buyer) { b.loop(ctx, c) })
	return sum(buyers, length), ctx.Err()
}

// Once lets each buyer send one order, all at the same moment, and returns when
// the last one has its answer. Rates are over the time until then, and latencies
// from that moment on.
func (l Load) Once(ctx context.Context) (Counts, error) {
	buyers, err := l.connect(ctx)
	defer closeAll(buyers)
	if err != nil {
		return Counts{}, err
	}
	c := openClock(2 * l.Patience) // an answer that comes, comes sooner
	run(buyers, func(b *buyer) { b.buy(ctx, c, 0) })
	return sum(buyers, c.now()), ctx.Err()
}

// run has all buyers work at once.
func run(buyers []*buyer, work func(*buyer)) {
	var wait sync.WaitGroup
	start := make(chan struct{})
	for _, b := range buyers {
		wait.Go(func() {
			<-start
			work(b)
		})
	}
	close(start)
	wait.Wait()
}

// connect returns the buyers, each with a connection that stands.
func (l *Load) connect(ctx context.Context) ([]*buyer, error) {
	buyers := make([]*buyer, l.Buyers)
	for i := range buyers {
		buyers[i] = &buyer{
			load:   l,
			conn:   conn{addr: l.Shops[i%len(l.Shops)]},
			pick:   l.Pick(uint64(i)),
			prefix: fmt.Sprintf("%s-%d-", l.Name, i),
		}
	}
	deadline := time.Now().Add(l.Patience)
	errs := make([]error, dialling)
	var wait sync.WaitGroup
	for lane := range errs {
		wait.Go(func() {
			for i := lane; i < len(buyers) && errs[lane] == nil; i += dialling {
				errs[lane] = buyers[i].conn.open(ctx, deadline)
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return buyers, fmt.Errorf("connect %d buyers: %w", l.Buyers, err)
		}
	}
	return buyers, nil
}

func closeAll(buyers []*buyer) {
	for _, b := range buyers {
		b.conn.close()
	}
}

package buyers

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Pace says when orders are sent. The zero value has each buyer order once, all at
// the same moment.
//
// With a Rate the load is open: orders are due at random moments that do not
// depend on each other (Poisson), whatever the shop does, and any buyer who does
// not wait for an answer sends them. Without one it is closed: each buyer orders
// again as soon as there is an answer to the order before.
type Pace struct {
	Rate     float64       // orders per second
	Duration time.Duration // orders are sent for so long; 0 is without an end
	Requests int           // so many orders in all; 0 is any number
}

// orders is after how many no more are sent.
func (p Pace) orders(buyers int) int {
	switch {
	case p == Pace{}:
		return buyers
	case p.Requests > 0:
		return p.Requests
	}
	return math.MaxInt
}

// desk deals out the orders of a race and takes the answers.
type desk struct {
	race  Race
	limit int64 // of orders
	sent  atomic.Int64
	start time.Time

	unsent int64 // by arrive alone

	mu      sync.Mutex
	records []Record
}

// presized is for how many answers there is room from the start: beyond, the room
// grows with them.
const presized = 100_000

func newDesk(r Race) *desk {
	orders := r.Pace.orders(r.Buyers)
	d := &desk{race: r, limit: int64(orders)}
	if orders <= presized {
		d.records = make([]Record, 0, orders)
	}
	return d
}

// open begins the race and returns the ctx that ends it.
func (d *desk) open(ctx context.Context) (context.Context, context.CancelFunc) {
	d.start = time.Now()
	d.race.Tally.begin(d.start, d.race.Pace, d.limit)
	return context.WithTimeout(ctx, d.race.Pace.Duration+d.race.Timeout)
}

// atOnce has all buyers work from the same moment on.
func (d *desk) atOnce(ctx context.Context, crowd []*buyer, work func(context.Context, *buyer)) {
	var ready, done sync.WaitGroup
	barrier := make(chan struct{})
	var set func(*buyer) // set before the barrier opens, which is what the buyers wait for
	ready.Add(len(crowd))
	for _, b := range crowd {
		done.Go(func() {
			ready.Done()
			<-barrier
			set(b)
		})
	}
	ready.Wait()
	limited, cancel := d.open(ctx)
	defer cancel()
	set = func(b *buyer) { work(limited, b) }
	close(barrier)
	done.Wait()
}

// buy has the buyer send an order that was due at that moment, and reports
// whether there was one left to send.
func (d *desk) buy(ctx context.Context, b *buyer, due time.Time) bool {
	number := d.sent.Add(1)
	if number > d.limit {
		return false
	}
	b.shop(ctx, number, due, d.take)
	return true
}

// take notes an answer when it comes, and what became of the order later.
func (d *desk) take(r Record, answered time.Time) (amend func(func(*Record))) {
	r.Ended = answered.Sub(d.start)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.records = append(d.records, r)
	i := len(d.records) - 1
	d.race.Tally.add(r)
	return func(change func(*Record)) {
		d.mu.Lock()
		defer d.mu.Unlock()
		change(&d.records[i])
	}
}

// loop has the buyer order again and again.
func (d *desk) loop(ctx context.Context, b *buyer) {
	length := d.race.Pace.Duration
	for ctx.Err() == nil && (length == 0 || time.Since(d.start) < length) {
		if !d.buy(ctx, b, time.Now()) {
			return
		}
	}
}

// arrive has orders sent when they are due. One that finds all buyers waiting for
// an answer is not sent: it is counted, and the shop does not have to serve it.
func (d *desk) arrive(ctx context.Context, crowd []*buyer) {
	ctx, cancel := d.open(ctx)
	defer cancel()
	p := d.race.Pace
	free := make(chan *buyer, len(crowd))
	for _, b := range crowd {
		free <- b
	}
	var done sync.WaitGroup
	defer done.Wait()
	random := rand.New(rand.NewPCG(1, 1)) // the same arrivals in each race
	last := d.start
	for range d.limit {
		due := last.Add(time.Duration(random.ExpFloat64() / p.Rate * float64(time.Second)))
		last = due
		if p.Duration > 0 && due.Sub(d.start) >= p.Duration || !sleepUntil(ctx, due) {
			return
		}
		select {
		case b := <-free:
			done.Go(func() {
				d.buy(ctx, b, due)
				free <- b
			})
		default:
			d.unsent++
			d.race.Tally.Errors.Add(1)
		}
	}
}

func sleepUntil(ctx context.Context, due time.Time) bool {
	if wait := time.Until(due); wait > 0 {
		return sleep(ctx, wait)
	}
	return ctx.Err() == nil
}

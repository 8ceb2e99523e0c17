// Package crowd sends a crowd of buyers to a shop: all at the same moment, at a rate, or each again and again.
//
// A race goes
//
//	connect every buyer -> all wait at the barrier -> released at once ->
//	each asks until it has an answer -> log -> recheck
//
// Each buyer has a connection of its own, which stands before the race begins, so that the shop is measured and not the
// dialling. A latency counts from the moment at which an order was due: the common start, where all order at once; a
// moment that does not depend on the shop, in an open race (Rate); the answer to the order before, in a closed one. So
// the time in a queue counts, and retries count.
//
// A buyer retries, with the same idempotency key, when the shop is too busy (429, 503, or any answer with Retry-After,
// which is honoured up to a limit) and when the outcome is unknown (no answer, a broken one, another 5xx), up to a
// number of tries.
//
// The Log has what the buyers were answered. It is written without a look at the shop's books, so that the two can be
// compared.
package crowd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/shopclient"
)

// Race is what the buyers of one race order and how.
type Race struct {
	Shops    []string // base URLs; buyers are dealt out to them in turn
	Strategy string
	SKUs     []string // at least one, the most wanted first
	Load

	RequestTimeout time.Duration // of one try
	Retry          Retry
	Watcher        Watcher // nil for none

	// Warm is for measurements in the closed model: Duration does not begin before each buyer has had an answer, and
	// before so much time has passed, and figures are of it alone. 0: it begins at once, and they are of the whole race.
	Warm time.Duration
}

// Load is how many buyers order what and when. It is flags, too.
type Load struct {
	Buyers int `default:"1000" help:"Buyers who all want one unit at the same moment (1 to 100000); with --rate, how many of them can wait for an answer at a time."`
	Pace
	Skew    float64       `default:"0" help:"How much more the first SKUs are wanted: the k-th in proportion to 1/k^skew (Zipf); 0 is all alike (0 to 5)."`
	Lines   int           `default:"1" help:"SKUs in an order: each is a cart of 1 to so many, one unit of each (1 to 20)."`
	Cancel  float64       `default:"0" help:"Share of the orders placed that their buyers cancel again (0 to 1)."`
	Repeat  float64       `name:"retry" default:"0" help:"Share of the orders placed that are sent a second time with the same key, and must come out as one order (0 to 1)."`
	Think   time.Duration `default:"2ms" help:"Pause of the shop between reading stock and writing it (0s to 1s). It stands for the work of a real shop, and is why a race shows on every run."`
	Timeout time.Duration `default:"2m0s" help:"Time limit per race; with --duration, for answers after it ends (1s to 1h). Buyers without an answer by then count as errors."`
}

// Pace says when orders are sent. The zero value has each buyer order once, all at the same moment. With a Rate the
// load is open, and any buyer who does not wait for an answer sends what is due; without one it is closed.
type Pace struct {
	Rate     float64       `placeholder:"N" help:"Open model: so many orders per second are due, at random moments that do not depend on each other (Poisson), however slow the shop is. Waits count from the moment an order is due. One that finds all --buyers waiting for an answer is not sent and counts as an error. Needs --duration or --requests (0.1 to 20000)."`
	Duration time.Duration `placeholder:"D" help:"Let buyers order for so long (100ms to 10m): with --rate when orders are due, without it each again as soon as there is an answer (closed model, in which a slow shop has fewer orders to answer)."`
	Requests int           `placeholder:"N" help:"End after so many orders in all, sent as with --duration, whichever comes first (1 to 1000000, which is the limit without it, too)."`
}

// MaxRequests is the most orders of a race: each is remembered.
const MaxRequests = 1_000_000

// Watcher follows a race. Its methods are called one after the other.
type Watcher interface {
	// Connecting: the buyers begin to connect; they count in the tally.
	Connecting(*Tally)
	// Ready: all have connected. They are released when it returns.
	Ready(ctx context.Context)
	// Answered: the race is over, whether it succeeded or not.
	Answered()
}

type unwatched struct{}

func (unwatched) Connecting(*Tally)     {}
func (unwatched) Ready(context.Context) {}
func (unwatched) Answered()             {}

// Tally counts while a race runs. It may be read at any time.
type Tally struct {
	Connected, Ordered, Refused, Errors atomic.Int64
}

func (t *Tally) add(o Outcome) {
	switch o {
	case Ordered:
		t.Ordered.Add(1)
	case Refused:
		t.Refused.Add(1)
	case Failed, Unknown:
		t.Errors.Add(1)
	}
}

// ErrDescriptors means that a process may open too few files and connections: a limit of the machine, and no verdict.
var ErrDescriptors = errors.New("too few file descriptors")

// CheckDescriptors returns an ErrDescriptors unless this process may open n files. Its limit is the hard one: Go raises
// the soft limit when a process starts.
func CheckDescriptors(n int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= uint64(n) {
		return nil //nolint:nilerr // a system without limits
	}
	return fmt.Errorf("%w: this needs a limit of %d (ulimit -n %[2]d), and it is %d", ErrDescriptors, n, limit.Cur)
}

// Run holds the race and returns what became of each order. It fails if a buyer cannot connect, before anything is
// bought, if ctx ends, and with ErrDescriptors if this process or a shop runs out of them. All connections are closed
// when it returns.
func (r Race) Run(ctx context.Context) (Log, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	run := &run{Race: r, tally: new(Tally), limit: int64(cmp.Or(r.Requests, MaxRequests)), stop: stop}
	if (r.Pace == Pace{}) {
		run.limit = int64(r.Buyers)
	}
	for i := range r.Buyers {
		b := newBuyer(run, i)
		defer b.conns.CloseIdleConnections()
		run.buyers = append(run.buyers, b)
	}
	if r.Watcher == nil {
		r.Watcher = unwatched{}
	}
	r.Watcher.Connecting(run.tally)
	defer r.Watcher.Answered()
	if err := run.connect(ctx); err != nil {
		return Log{}, err
	}
	r.Watcher.Ready(ctx)
	switch {
	case r.Rate > 0:
		run.open(ctx)
	case r.Pace == Pace{}:
		run.together(ctx, func(ctx context.Context, b *buyer) { run.next(ctx, b, run.start) })
	default:
		run.together(ctx, run.closed)
	}
	if ctx.Err() != nil {
		return Log{}, context.Cause(ctx)
	}
	log := run.log()
	if slices.ContainsFunc(log.Records, func(r Record) bool { return r.Outcome == Failed || r.Outcome == Unknown }) {
		return log, r.checkShops(ctx)
	}
	return log, nil
}

// checkShops checks that each shop accepts further connections while the buyers are connected. A shop without file
// descriptors for them cannot connect to its own servers.
func (r Race) checkShops(ctx context.Context) error {
	const some = 32
	for i := range some * len(r.Shops) {
		conns := shopclient.NewBuyer(10 * time.Second)
		defer conns.CloseIdleConnections()
		base := r.Shops[i%len(r.Shops)]
		if err := shopclient.New(base, conns).Connect(ctx); err != nil {
			return fmt.Errorf("%s takes no more connections: its process may have %w: %w", base, ErrDescriptors, err)
		}
	}
	return nil
}

// run is a race that goes on.
type run struct {
	Race
	tally  *Tally
	stop   context.CancelCauseFunc
	buyers []*buyer
	start  time.Time
	limit  int64 // of orders
	sent   atomic.Int64
	unsent int64 // by open alone

	warmed atomic.Int64 // buyers who have had an answer
	began  atomic.Int64 // of Duration, in nanoseconds since the start; 0: it has not
}

// dialling is how many buyers connect at a time, well inside the queue of connections that a listener keeps.
const dialling = 100

func (r *run) connect(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dialling)
	for _, b := range r.buyers {
		group.Go(func() error {
			if err := b.shops[0].Connect(ctx); err != nil {
				return fmt.Errorf("%s of %d cannot connect: %w", b.name, len(r.buyers), err)
			}
			r.tally.Connected.Add(1)
			return nil
		})
	}
	return group.Wait()
}

// begin starts the clock and returns the ctx that ends the race.
func (r *run) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	r.start = time.Now()
	return context.WithTimeout(ctx, r.Warm+r.Duration+r.Timeout)
}

// together has all buyers work from the same moment on, and returns when all are done.
func (r *run) together(ctx context.Context, work func(context.Context, *buyer)) {
	var ready, done sync.WaitGroup
	ready.Add(len(r.buyers))
	barrier := make(chan struct{})
	limited := ctx // set before the barrier opens
	for _, b := range r.buyers {
		done.Go(func() {
			ready.Done()
			<-barrier
			work(limited, b)
		})
	}
	ready.Wait()
	limited, cancel := r.begin(ctx)
	defer cancel()
	close(barrier)
	done.Wait()
}

// next has the buyer send an order that was due at that moment, and reports whether there was one left to send.
func (r *run) next(ctx context.Context, b *buyer, due time.Time) bool {
	number := r.sent.Add(1)
	if number > r.limit {
		return false
	}
	b.order(ctx, number, due)
	return true
}

// closed has the buyer order again and again, until the time is up.
func (r *run) closed(ctx context.Context, b *buyer) {
	more := r.next(ctx, b, r.start)
	if r.warmed.Add(1) == int64(len(r.buyers)) && r.Warm > 0 {
		r.began.Store(int64(max(r.Warm, time.Since(r.start))))
	}
	for more && ctx.Err() == nil && !r.over() {
		more = r.next(ctx, b, time.Now())
	}
}

func (r *run) over() bool {
	began := r.began.Load()
	if r.Duration == 0 || r.Warm > 0 && began == 0 {
		return false
	}
	return time.Since(r.start) >= time.Duration(began)+r.Duration
}

// open has orders sent when they are due. One that finds all buyers waiting for an answer is not sent: it is counted,
// and the shop does not have to serve it.
func (r *run) open(ctx context.Context) {
	ctx, cancel := r.begin(ctx)
	defer cancel()
	free := make(chan *buyer, len(r.buyers))
	for _, b := range r.buyers {
		free <- b
	}
	var done sync.WaitGroup
	defer done.Wait()
	random := rand.New(rand.NewPCG(1, 1)) // the same arrivals in each race
	due := r.start
	for range r.limit {
		due = due.Add(time.Duration(random.ExpFloat64() / r.Rate * float64(time.Second)))
		if r.Duration > 0 && due.Sub(r.start) >= r.Duration || !shopclient.Pause(ctx, time.Until(due)) {
			return
		}
		select {
		case b := <-free:
			at := due
			done.Go(func() {
				r.next(ctx, b, at)
				free <- b
			})
		default:
			r.unsent++
			r.tally.Errors.Add(1)
		}
	}
}

func (r *run) log() Log {
	log := Log{SKU: r.SKUs[0], Unsent: r.unsent, Began: time.Duration(r.began.Load())}
	for _, b := range r.buyers {
		log.Records = append(log.Records, b.records...)
	}
	slices.SortFunc(log.Records, func(a, b Record) int { return cmp.Compare(a.Ended, b.Ended) })
	if n := len(log.Records); n > 0 {
		log.Took = log.Records[n-1].Ended
	}
	if r.Warm > 0 {
		log.Length = r.Duration
	}
	return log
}

// wanted is what an order is to be and what its buyer does with it.
type wanted struct {
	lines          []shopclient.Line
	cancel, repeat bool // if it is placed
}

// wanted draws the order of this number, which is the same in every race of the same Race, whoever sends it and
// whenever.
func (r Race) wanted(number int64) wanted {
	random := rand.New(rand.NewPCG(uint64(number), 2))
	var w wanted
	for _, rank := range draw(random, len(r.SKUs), r.Skew, 1+random.IntN(max(1, r.Lines))) {
		w.lines = append(w.lines, shopclient.Line{SKU: r.SKUs[rank], Units: 1})
	}
	w.cancel = random.Float64() < r.Cancel
	w.repeat = random.Float64() < r.Repeat
	return w
}

// draw draws so many of the ranks 0 to n-1, in ascending order, rank k in proportion to 1/(k+1)^skew. With 100 SKUs and
// 1.1, the first one gets a quarter of all orders, the first ten two thirds. Each rank is due after an exponential time
// with its weight as the rate; those that are due first are drawn.
func draw(random *rand.Rand, n int, skew float64, count int) []int {
	ranks, due := make([]int, n), make([]float64, n)
	for k := range ranks {
		ranks[k], due[k] = k, random.ExpFloat64()*math.Pow(float64(k+1), skew)
	}
	slices.SortFunc(ranks, func(a, b int) int { return cmp.Compare(due[a], due[b]) })
	return slices.Sorted(slices.Values(ranks[:count]))
}

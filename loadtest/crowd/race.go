// Package crowd sends a crowd of buyers to a shop, all at the same moment: each orders once, or again and again.
//
// A race goes
//
//	connect every buyer -> all wait at the barrier -> released at once ->
//	each asks until it has an answer -> log -> recheck
//
// Each buyer has a connection of its own, which stands before the race begins, so that the shop is measured and not the
// dialling. A latency counts from the moment at which an order was due: the common start for a buyer's first order, and
// the answer to the order before for each later one, or to its payment or cancellation. So the time in a queue counts, and
// retries count.
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
	"net/http"
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
	Tries          int           // requests for one order, the first included
	MaxPause       time.Duration // between two tries, whatever the shop asks for
	Watcher        Watcher       // nil for none

	// Warm is the time before Duration, which measurements have: Duration begins when Warm has passed and each buyer has
	// had an answer, and figures are of Duration alone. 0: Duration begins at once, and figures are of the whole race.
	Warm time.Duration

	Keys *shopclient.Keys // of shops that want tokens; nil: buyers name themselves

	// Operators are the operator's listeners of Shops, where a payment service, for all buyers, says that orders are paid; nil
	// where buyers pay by their own word.
	Operators []string

	Least int // fewest SKUs in an order, up to Lines; less than 1: one

	// Orders is after how many of them a buyer leaves, and another comes, who has never bought before; 0: never.
	Orders int

	// Pay and Cancel are the shares of their orders that are paid or cancelled, by one request before the buyer's next order.
	Pay, Cancel float64
}

// Load is how many buyers order what, and for how long. kong reads the flags into it.
type Load struct {
	Buyers   int           `default:"1000" help:"Buyers who all want one unit at the same moment (1 to 100000)."`
	Duration time.Duration `placeholder:"D" help:"How long each buyer orders, again as soon as there is an answer: a closed model, in which a slow shop gets fewer orders (100ms to 10m). A million answers take about 1 GB of memory. Without it each buyer orders once."`
	Skew     float64       `default:"0" help:"How much more the first SKUs are wanted: the k-th in proportion to 1/k^skew (Zipf); 0 is all alike (0 to 5)."`
	Lines    int           `default:"1" help:"Most SKUs in an order: a cart has 1 to N, one unit of each (1 to 20)."`
	Think    time.Duration `default:"2ms" help:"Pause of the shop between reading stock and writing it (0s to 1s). It stands for the work of a real shop, and makes the race show on every run."`
	Timeout  time.Duration `default:"2m0s" help:"Time limit per race; with --duration, for answers after it ends (1s to 1h). Buyers without an answer by then count as errors."`
}

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
	run := newRun(r)
	run.stop = stop
	defer run.provider.CloseIdleConnections()
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
	run.hold(ctx)
	if ctx.Err() != nil {
		return Log{}, context.Cause(ctx)
	}
	log := run.log()
	if slices.ContainsFunc(log.Records, func(r Record) bool { return r.Outcome == Failed || r.Outcome == Unknown }) {
		return log, r.checkShops(ctx)
	}
	return log, nil
}

// shop returns a client of one of the shops, which take turns.
func (r Race) shop(turn int, conns *http.Client) *shopclient.Client {
	turn %= len(r.Shops)
	client := shopclient.New(r.Shops[turn], conns)
	if r.Keys == nil {
		return client
	}
	operator := ""
	if r.Operators != nil {
		operator = r.Operators[turn]
	}
	return client.WithKeys(r.Keys, operator)
}

// checkShops checks that each shop accepts further connections while the buyers are connected. A shop without file
// descriptors for them cannot connect to its own servers.
func (r Race) checkShops(ctx context.Context) error {
	const some = 32
	for i := range some * len(r.Shops) {
		conns := shopclient.NewBuyer(10 * time.Second)
		defer conns.CloseIdleConnections()
		if err := r.shop(i, conns).Connect(ctx); err != nil {
			return fmt.Errorf("%s takes no more connections: its process may have %w: %w", r.Shops[i%len(r.Shops)], ErrDescriptors, err)
		}
	}
	return nil
}

// run is a race that goes on.
type run struct {
	Race
	begins []float64 // where each SKU begins on the line that draw draws from, and where the last ends
	tally  *Tally
	stop   context.CancelCauseFunc
	buyers []*buyer
	start  time.Time

	provider *http.Client // the payment service's connections

	warmed atomic.Int64 // buyers who have had an answer
	began  atomic.Int64 // of Duration, in nanoseconds since the start; 0: it has not
}

func newRun(r Race) *run {
	run := &run{Race: r, tally: new(Tally), begins: []float64{0}, provider: shopclient.NewConnections(r.Buyers, r.RequestTimeout)}
	for k := range r.SKUs {
		run.begins = append(run.begins, run.begins[k]+math.Pow(float64(k+1), -r.Skew))
	}
	return run
}

// dialling is how many buyers connect at a time, well inside the queue of connections that a listener keeps.
const dialling = 100

func (r *run) connect(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dialling)
	for _, b := range r.buyers {
		group.Go(func() error {
			if err := r.shop(b.number, b.conns).Connect(ctx); err != nil {
				return fmt.Errorf("%s of %d cannot connect: %w", b.name, len(r.buyers), err)
			}
			r.tally.Connected.Add(1)
			return nil
		})
	}
	return group.Wait()
}

// hold has all buyers order from the same moment on, and returns when all are done.
func (r *run) hold(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.Warm+r.Duration+r.Timeout)
	defer cancel()
	var ready, done sync.WaitGroup
	ready.Add(len(r.buyers))
	barrier := make(chan struct{})
	for _, b := range r.buyers {
		done.Go(func() {
			ready.Done()
			<-barrier
			r.work(ctx, b)
		})
	}
	ready.Wait()
	r.start = time.Now()
	close(barrier)
	done.Wait()
}

// work has the buyer order until the time is up, but once at least.
func (r *run) work(ctx context.Context, b *buyer) {
	b.order(ctx, r.start)
	if r.warmed.Add(1) == int64(len(r.buyers)) && r.Warm > 0 {
		r.began.Store(int64(max(r.Warm, time.Since(r.start))))
	}
	for ctx.Err() == nil && !r.over() {
		b.order(ctx, time.Now())
	}
}

func (r *run) over() bool {
	began := r.began.Load()
	if r.Warm > 0 && began == 0 {
		return false
	}
	return time.Since(r.start) >= time.Duration(began)+r.Duration
}

func (r *run) log() Log {
	log := Log{SKU: r.SKUs[0], Began: time.Duration(r.began.Load())}
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

// cart draws Least to Lines different SKUs, in the order of SKUs, the k-th in proportion to 1/k^Skew. With 100 SKUs and
// 1.1, the first one gets a quarter of all orders, the first ten two thirds.
func (r *run) cart(random *rand.Rand) (lines []shopclient.Line) {
	most := min(r.Lines, len(r.SKUs))
	least := max(1, min(r.Least, most))
	var drawn []int // in order
	for n := least + random.IntN(max(1, most-least+1)); len(drawn) < n; {
		drawn = r.draw(random, drawn)
	}
	for _, k := range drawn {
		lines = append(lines, shopclient.Line{SKU: r.SKUs[k], Units: 1})
	}
	return lines
}

// draw adds a SKU to those that were drawn. The SKUs lie end to end on a line, each as long as it is wanted; a point of
// what is left of the line, without those drawn, hits one.
func (r *run) draw(random *rand.Rand, drawn []int) []int {
	length := func(k int) float64 { return r.begins[k+1] - r.begins[k] }
	left := r.begins[len(r.SKUs)]
	for _, k := range drawn {
		left -= length(k)
	}
	point, place := random.Float64()*left, 0
	for place < len(drawn) && point >= r.begins[drawn[place]] {
		point += length(drawn[place])
		place++
	}
	k, exact := slices.BinarySearch(r.begins, point)
	if !exact {
		k--
	}
	if k == len(r.SKUs) || slices.Contains(drawn, k) { // by rounding: the next point will do
		return drawn
	}
	return slices.Insert(drawn, place, k)
}

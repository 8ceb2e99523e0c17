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
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/shopclient"
)

// Race is what the buyers of one race order and how.
type Race struct {
	Shops     []string         // base URLs; buyers are dealt out to them in turn
	Operators []string         // the operators' listeners of Shops, for payments by a payment service; nil: buyers pay by their own word
	Keys      *shopclient.Keys // of shops that want tokens; nil: buyers name themselves
	Strategy  string
	Think     time.Duration // of the shop, between reading stock and writing it; less than 0: as the shop is set

	Buyers   int
	Duration time.Duration // how long each buyer orders, again as soon as there is an answer; 0: each orders once
	Timeout  time.Duration // of the race, after Warm and Duration: buyers without an answer by then count as errors
	Orders   int           // after N orders, a buyer who has never bought takes the place of this one; 0: never

	SKUs        []string // at least one, the most wanted first
	Skew        float64  // the k-th is wanted in proportion to 1/k^Skew (Zipf); 0: all alike
	Least       int      // fewest SKUs in an order, one unit of each; less than 1: one
	Lines       int      // most SKUs in an order; less than Least: as many
	Pay, Cancel float64  // shares of the orders that are paid or cancelled, by one request before the buyer's next order

	Patience
	RequestTimeout time.Duration // of one try
	Watcher        Watcher       // nil for none

	// Warm is for measurements: Duration begins when Warm has passed and each buyer has had an answer, and only Duration
	// counts. 0: Duration begins at once, and the whole race counts.
	Warm time.Duration
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
// bought, if ctx ends, and with ErrDescriptors if this process runs out of them or a shop says so. All connections are
// closed when it returns.
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
	if r.Watcher != nil {
		r.Watcher.Connecting(run.tally)
		defer r.Watcher.Answered()
	}
	if err := run.connect(ctx); err != nil {
		return Log{}, err
	}
	if r.Watcher != nil {
		r.Watcher.Ready(ctx)
	}
	run.hold(ctx)
	if ctx.Err() != nil {
		return Log{}, context.Cause(ctx)
	}
	return run.log(), nil
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

// run is a race that goes on.
type run struct {
	Race
	wanted []float64 // how much each SKU is wanted, with those before it
	tally  *Tally
	stop   context.CancelCauseFunc
	buyers []*buyer
	start  time.Time

	provider *http.Client // the payment service's connections

	warmed atomic.Int64 // buyers who have had an answer
	began  atomic.Int64 // of Duration, in nanoseconds since the start; 0: it has not
}

func newRun(r Race) *run {
	run := &run{Race: r, tally: new(Tally), provider: shopclient.NewConnections(r.Buyers, r.RequestTimeout)}
	sum := 0.0
	for k := range r.SKUs {
		sum += math.Pow(float64(k+1), -r.Skew)
		run.wanted = append(run.wanted, sum)
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
	least := max(1, r.Least)
	var drawn []int
	for n := min(len(r.SKUs), least+random.IntN(max(1, r.Lines-least+1))); len(drawn) < n; {
		k := sort.SearchFloat64s(r.wanted, random.Float64()*r.wanted[len(r.wanted)-1])
		if !slices.Contains(drawn, k) {
			drawn = append(drawn, k)
		}
	}
	slices.Sort(drawn)
	for _, k := range drawn {
		lines = append(lines, shopclient.Line{SKU: r.SKUs[k], Units: 1})
	}
	return lines
}

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

	Buyers  int
	Timeout time.Duration // of the race, after its Duration: buyers without an answer by then count as errors
	Orders  int           // after N orders, a buyer who has never bought takes the place of this one; 0: never

	// Duration is for measurements: each buyer orders again as soon as there is an answer. Duration begins when each buyer
	// has had an answer and a fifth of it has passed, and only Duration counts. 0: each buyer orders once, and all counts.
	Duration time.Duration

	SKUs        []string // at least one, the most wanted first
	Skew        float64  // the k-th is wanted in proportion to 1/k^Skew (Zipf); 0: all alike
	Least       int      // fewest SKUs in an order, one unit of each; less than 1: one
	Lines       int      // most SKUs in an order; less than Least: as many
	Pay, Cancel float64  // shares of the orders that are paid or cancelled, by one request before the buyer's next order

	Patience
	RequestTimeout time.Duration // of one try
	Tally          *Tally        // counts the race while it runs; nil for none
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
	run := newRun(r)
	ctx, run.stop = context.WithCancelCause(ctx)
	defer run.stop(nil)
	defer run.provider.CloseIdleConnections()
	for i := range r.Buyers {
		b := newBuyer(run, i)
		defer b.conns.CloseIdleConnections()
		run.buyers = append(run.buyers, b)
	}
	if err := run.connect(ctx); err != nil {
		return Log{}, err
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
	operator := ""
	if r.Operators != nil {
		operator = r.Operators[turn]
	}
	return shopclient.New(r.Shops[turn], conns).WithKeys(r.Keys, operator)
}

// run is a race that goes on.
type run struct {
	Race
	wanted   []float64 // how much each SKU is wanted, with those before it
	stop     context.CancelCauseFunc
	buyers   []*buyer
	provider *http.Client // the payment service's connections
	start    time.Time

	warmed atomic.Int64 // buyers who have had an answer
	began  atomic.Int64 // of Duration, in nanoseconds since the start; 0: it has not
}

func newRun(r Race) *run {
	if r.Tally == nil {
		r.Tally = new(Tally)
	}
	run := &run{Race: r, provider: shopclient.NewConnections(r.Buyers, r.RequestTimeout)}
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
			r.Tally.Connected.Add(1)
			return nil
		})
	}
	return group.Wait()
}

// hold has all buyers order from the same moment on, and returns when all are done.
func (r *run) hold(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.warm()+r.Duration+r.Timeout)
	defer cancel()
	var done sync.WaitGroup
	barrier := make(chan struct{})
	for _, b := range r.buyers {
		done.Go(func() {
			<-barrier
			r.work(ctx, b)
		})
	}
	r.start = time.Now()
	close(barrier)
	done.Wait()
}

// work has the buyer order until the time is up, but once at least.
func (r *run) work(ctx context.Context, b *buyer) {
	b.order(ctx, r.start)
	if r.Duration == 0 {
		return
	}
	if r.warmed.Add(1) == int64(len(r.buyers)) {
		r.began.Store(int64(max(r.warm(), time.Since(r.start))))
	}
	for ctx.Err() == nil {
		if began := r.began.Load(); began > 0 && time.Since(r.start) >= time.Duration(began)+r.Duration {
			return
		}
		b.order(ctx, time.Now())
	}
}

func (r *run) warm() time.Duration { return r.Duration / 5 }

func (r *run) log() Log {
	log := Log{SKU: r.SKUs[0], Began: time.Duration(r.began.Load()), Length: r.Duration}
	for _, b := range r.buyers {
		log.Records = append(log.Records, b.records...)
		log.Took = max(log.Took, b.records[len(b.records)-1].Ended)
	}
	slices.SortFunc(log.Records, func(a, b Record) int { return cmp.Compare(a.Ended, b.Ended) })
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

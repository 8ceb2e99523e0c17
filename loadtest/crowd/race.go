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
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/shopclient"
)

// Race describes a race: its shops, its buyers and their orders.
type Race struct {
	Shops    []func(*http.Client) *shopclient.Client // the buyers are distributed over the shops
	Strategy string
	Think    time.Duration // of the shop, between reading the stock and writing it; less than 0: the shop's own setting

	Buyers  int
	Timeout time.Duration // of the race, after its Duration: buyers without an answer by then count as errors
	Orders  int           // after N orders, a new buyer replaces each buyer; 0: never

	// Duration is the time to measure. Each buyer orders again when answered. The warm-up comes first: until each buyer
	// has had an answer, and then a fifth of Duration. Its requests are not counted. 0: each buyer orders once, and all
	// orders count.
	Duration time.Duration

	SKUs        []string // at least one, the most wanted first
	Skew        float64  // the k-th SKU is wanted in proportion to 1/k^Skew (Zipf); 0: all equally
	Least       int      // fewest SKUs in an order, one unit of each; less than 1 means 1
	Lines       int      // most SKUs in an order; less than Least means Least
	Pay, Cancel float64  // shares of the orders that are paid or cancelled, before the buyer's next order

	Patience
	RequestTimeout time.Duration // of one try
	Tally          *Tally        // counts the race while it runs
}

// Tally has the counts of a race. It may be read while the race runs.
type Tally struct {
	Connected, Ordered, Refused, Errors atomic.Int64

	// Available is the stock column after the last order; nil before, or if the shop reports no steps.
	Available atomic.Pointer[int64]
}

func (t *Tally) add(o Outcome) {
	[...]*atomic.Int64{Unknown: &t.Errors, Ordered: &t.Ordered, Refused: &t.Refused, Failed: &t.Errors}[o].Add(1)
}

// ErrDescriptors means that a process may open too few files and connections. It is a limit of the
// machine, not a verdict.
var ErrDescriptors = errors.New("too few file descriptors")

// Run holds the race and returns the outcome of each order. It fails before the first order if a buyer cannot connect.
// It also fails if ctx ends, and with ErrDescriptors if this process or a shop runs out of descriptors. All connections
// are closed when it returns.
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
	return r.Shops[turn%len(r.Shops)](conns)
}

// run is a running race.
type run struct {
	Race
	wanted   []float64 // cumulative weights of the SKUs
	stop     context.CancelCauseFunc
	buyers   []*buyer
	provider *http.Client // the payment service's connections
	start    time.Time

	warmed atomic.Int64 // buyers who have had an answer
	began  atomic.Int64 // begin of Duration, in nanoseconds since the start; 0 before
}

func newRun(r Race) *run {
	run := &run{Race: r, provider: shopclient.NewConnections(r.Buyers, r.RequestTimeout)}
	sum := 0.0
	for k := range r.SKUs {
		sum += math.Pow(float64(k+1), -r.Skew)
		run.wanted = append(run.wanted, sum)
	}
	return run
}

// dialling is the number of buyers that connect at a time. It is far below the length of a listener's queue.
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

// hold lets all buyers order from the same moment on, and returns when all are done.
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

// work lets the buyer order until the time is up, but at least once.
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
// a Skew of 1.1, the first SKU gets a quarter of all orders, and the first ten get two thirds.
func (r *run) cart(random *rand.Rand) (lines []shopclient.Line) {
	least := max(1, r.Least)
	var drawn []int
	for n := min(len(r.SKUs), least+random.IntN(max(1, r.Lines-least+1))); len(drawn) < n; {
		k, _ := slices.BinarySearch(r.wanted, random.Float64()*r.wanted[len(r.wanted)-1])
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

// Patience says how a buyer repeats a request, with the same idempotency key: an earlier try may have had its effect.
type Patience struct {
	Tries    int           // maximum of requests, including the first; 0: until the context ends
	Pause    time.Duration // after the first try; it doubles with each try
	MaxPause time.Duration // even if the shop asks for more
}

// Insist calls ask until its answer is final, the tries are used up or ctx ends. try counts from 0.
func (p Patience) Insist(ctx context.Context, ask func(try int) (shopclient.Answer, error)) {
	for try := 0; ; try++ {
		answer, err := ask(try)
		if Final(answer, err) || try+1 == p.Tries || !shopclient.Pause(ctx, p.after(try, answer.RetryAfter)) {
			return
		}
	}
}

// Final reports whether an answer tells the outcome of a request. An answer with a status of 500 or more does not: it
// may come from a load balancer that has lost the shop during the request, or from a shop that has lost its database.
func Final(a shopclient.Answer, err error) bool {
	again := a.Status == http.StatusTooManyRequests || a.Status >= http.StatusInternalServerError ||
		a.RetryAfter > 0 || a.Problem.RetrySafe // the first request with this key still runs, for example
	return err == nil && !again
}

// after returns the pause after a try: the time that the shop asks for, or one that doubles with each try. It adds a
// random part of up to half, so that buyers who were refused together do not come back together.
func (p Patience) after(try int, asked time.Duration) time.Duration {
	wait := min(cmp.Or(asked, p.Pause<<min(try, 16)), p.MaxPause)
	return wait + time.Duration(rand.Float64()*float64(wait/2))
}

// buyer sends one order after the other and has connections of its own.
type buyer struct {
	run     *run
	number  int
	name    string
	random  *rand.Rand // the n-th order of a buyer is the same in every race
	records []Record
	conns   *http.Client
}

func newBuyer(r *run, i int) *buyer {
	return &buyer{
		run: r, number: i, name: "buyer-" + strconv.Itoa(i+1), random: rand.New(rand.NewPCG(uint64(i), 2)),
		conns: shopclient.NewBuyer(r.RequestTimeout),
	}
}

// order sends an order that was due at the given moment. Each try goes to the next shop, as behind a load balancer: the
// shop of the try before may have failed.
func (b *buyer) order(ctx context.Context, due time.Time) {
	if n := b.run.Orders; n > 0 && len(b.records)%n == 0 { // another buyer comes
		b.name = fmt.Sprintf("%s-%d-%d", b.run.SKUs[0], b.number+1, len(b.records)/n+1)
	}
	p := shopclient.Purchase{
		Buyer: b.name, Key: fmt.Sprintf("%s/%s/%d", b.run.SKUs[0], b.name, len(b.records)+1),
		Lines: b.run.cart(b.random), Strategy: b.run.Strategy, Think: b.run.Think,
	}
	end := b.random.Float64() // drawn for each order, so that later carts do not depend on the answer
	record := Record{Buyer: b.name, Lines: p.Lines, Outcome: Failed}
	var placed shopclient.Order
	b.run.Insist(ctx, func(try int) (shopclient.Answer, error) {
		answer, err := b.run.shop(b.number+try, b.conns).Buy(ctx, p)
		answered := time.Now()
		record.Tries++
		if n := len(b.run.Shops); n > 1 {
			record.Shop = (b.number+try)%n + 1
		}
		if answer.Trace != nil {
			record.Deadlocks += answer.Trace.Deadlocks
		}
		record.Latency, record.Ended = answered.Sub(due), answered.Sub(b.run.start)
		record.Reason = shopclient.Explain(answer, err)
		if errors.Is(err, syscall.EMFILE) || answer.Problem.Code() == "too-few-descriptors" {
			b.run.stop(fmt.Errorf("%w: %s", ErrDescriptors, record.Reason))
		}
		switch outcome := outcomeOf(answer, err); outcome {
		case Ordered, Refused:
			record.Outcome, record.Reason = outcome, ""
			record.OrderID, record.Trace, placed = answer.Order.ID, answer.Trace, answer.Order
		case Unknown: // only a definite answer to a later try changes this
			record.Outcome = Unknown
		case Failed:
		}
		return answer, err
	})
	b.run.Tally.add(record.Outcome)
	if record.Outcome == Ordered {
		b.run.Tally.Available.Store(record.left())
		b.end(ctx, &record, placed.Total, end)
	}
	b.records = append(b.records, record)
	if b.run.Duration > 0 && (record.Outcome == Failed || record.Outcome == Unknown) {
		shopclient.Pause(ctx, b.run.after(0, 0)) // or a shop that fails at once gets requests without pause
	}
}

// outcomeOf returns the outcome of one answer.
func outcomeOf(a shopclient.Answer, err error) Outcome {
	switch {
	case err != nil:
		return Unknown
	case a.Order.ID != "":
		return Ordered
	case a.Status == http.StatusConflict && a.Problem.Code() == "sold-out":
		return Refused
	case a.Status == http.StatusTooManyRequests, Final(a, nil):
		return Failed
	}
	return Unknown
}

// end pays the order, cancels it or leaves it pending, depending on draw, a number from 0 to 1.
func (b *buyer) end(ctx context.Context, record *Record, total shopclient.Money, draw float64) {
	var answer shopclient.Answer
	var err error
	how, id := "pay", record.OrderID
	switch {
	case draw < b.run.Pay: // by the payment service
		payment := shopclient.Payment{ID: "pi-" + id, OrderID: id, Amount: total}
		answer, err = b.run.shop(b.number, b.run.provider).TakePayment(ctx, payment)
	case draw < b.run.Pay+b.run.Cancel:
		how, record.Cancelled = "cancel", true
		answer, err = b.run.shop(b.number, b.conns).Cancel(ctx, b.name, id, "")
	default:
		return
	}
	if err != nil || answer.Order.ID == "" {
		record.Reason = how + ": " + shopclient.Explain(answer, err)
	}
}

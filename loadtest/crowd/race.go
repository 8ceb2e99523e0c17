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
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/shopclient"
)

// Race is what the buyers of one race order and how.
type Race struct {
	Shops    []func(*http.Client) *shopclient.Client // buyers are dealt out to them in turn
	Provider bool                                    // a payment service says that orders are paid; false: their buyers do
	Strategy string
	Think    time.Duration // of the shop, between reading stock and writing it; less than 0: as the shop is set

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
	Tally          *Tally        // counts the race while it runs
}

// Tally counts while a race runs. It may be read at any time.
type Tally struct {
	Connected, Ordered, Refused, Errors atomic.Int64
}

func (t *Tally) add(o Outcome) {
	[...]*atomic.Int64{Unknown: &t.Errors, Ordered: &t.Ordered, Refused: &t.Refused, Failed: &t.Errors}[o].Add(1)
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
	return r.Shops[turn%len(r.Shops)](conns)
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

// Patience is how a buyer asks again: with the same idempotency key, because an earlier request may have had its effect.
type Patience struct {
	Tries    int           // requests at most, the first included; 0: until the context ends
	Pause    time.Duration // after the first try; it doubles with each
	MaxPause time.Duration // also where the shop asks for more
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

// Final reports whether an answer says what became of a request. Any answer with a status of 500 or more does not: it may
// come from a load balancer that lost the shop in mid-request, or from a shop that lost its database.
func Final(a shopclient.Answer, err error) bool {
	again := a.Status == http.StatusTooManyRequests || a.Status >= http.StatusInternalServerError ||
		a.RetryAfter > 0 || a.Problem.RetrySafe // the first request with this key still runs, for example
	return err == nil && !again
}

// after returns the pause after a try: the time that the shop asks for, or one that doubles with each try. Up to half is
// added at random, or all buyers that were turned away together would come back together.
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

// order sends an order that was due at that moment. Each try goes to the next shop, as behind a load balancer: the shop of
// the try before may be gone.
func (b *buyer) order(ctx context.Context, due time.Time) {
	if n := b.run.Orders; n > 0 && len(b.records)%n == 0 { // another buyer comes
		b.name = fmt.Sprintf("%s-%d-%d", b.run.SKUs[0], b.number+1, len(b.records)/n+1)
	}
	p := shopclient.Purchase{
		Buyer: b.name, Key: fmt.Sprintf("%s/%s/%d", b.run.SKUs[0], b.name, len(b.records)+1),
		Lines: b.run.cart(b.random), Strategy: b.run.Strategy, Think: b.run.Think,
	}
	end := b.random.Float64() // drawn for each order, or the next carts would depend on the answer
	record := Record{Buyer: b.name, Lines: p.Lines, Outcome: Failed}
	var placed shopclient.Order
	b.run.Insist(ctx, func(try int) (shopclient.Answer, error) {
		answer, err := b.run.shop(b.number+try, b.conns).Buy(ctx, p)
		if err != nil {
			answer.At = time.Now()
		}
		record.Tries++
		if answer.Trace != nil {
			record.Deadlocks += answer.Trace.Deadlocks
		}
		record.Latency, record.Ended = answer.At.Sub(due), answer.At.Sub(b.run.start)
		record.Reason = shopclient.Explain(answer, err)
		if errors.Is(err, syscall.EMFILE) || answer.Problem.Code() == "too-few-descriptors" {
			b.run.stop(fmt.Errorf("%w: %s", ErrDescriptors, record.Reason))
		}
		switch outcome := outcomeOf(answer, err); outcome {
		case Ordered, Refused:
			record.Outcome, record.Reason = outcome, ""
			record.OrderID, record.Trace, placed = answer.Order.ID, answer.Trace, answer.Order
		case Unknown: // only a definite answer of a later try changes that
			record.Outcome = Unknown
		case Failed:
		}
		return answer, err
	})
	b.run.Tally.add(record.Outcome)
	if record.Outcome == Ordered {
		b.end(ctx, &record, placed.Total, end)
	}
	b.records = append(b.records, record)
	if b.run.Duration > 0 && (record.Outcome == Failed || record.Outcome == Unknown) {
		shopclient.Pause(ctx, b.run.after(0, 0)) // a shop that fails at once is not asked without a pause
	}
}

// outcomeOf returns what one answer means to a buyer.
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

// end pays the order, cancels it or leaves it pending, as a number from 0 to 1 has it.
func (b *buyer) end(ctx context.Context, record *Record, total shopclient.Money, draw float64) {
	var answer shopclient.Answer
	var err error
	how, id := "pay", record.OrderID
	switch {
	case draw < b.run.Pay && b.run.Provider:
		payment := shopclient.Payment{ID: "pi-" + id, OrderID: id, Amount: total}
		answer, err = b.run.shop(b.number, b.run.provider).TakePayment(ctx, payment)
	case draw < b.run.Pay:
		answer, err = b.run.shop(b.number, b.conns).Pay(ctx, b.name, id, "")
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

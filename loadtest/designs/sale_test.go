package designs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// asSeller as the first argument makes the test binary a seller's process: the command starts itself so.
const asSeller = "designs"

// sellerProcess runs in place of the tests where the test binary is a seller's process.
type sellerProcess struct{}

func (sellerProcess) Run() (code int) {
	if err := sell(app.UntilSignal(), append(All(), forgetful()), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// forgetful is wrong in every way: a count in Redis decides, and the buyer is answered before a goroutine inserts the
// order.
func forgetful() Design {
	return Design{
		Name: "forgetful", Wrong: true, Redis: true,
		Prepare: func(ctx context.Context, on Servers, units map[string]int64) (err error) {
			for sku, n := range units {
				err = errors.Join(err, on.Redis.Set(ctx, countKey(sku), n, 0).Err())
			}
			return err
		},
		Open: func(ctx context.Context, on Servers) Seller {
			s := &forgetfulSeller{Servers: on, orders: make(chan Order)}
			s.writer.Go(func() { s.write(context.WithoutCancel(ctx)) })
			return Seller{s.buy, s.close}
		},
	}
}

type forgetfulSeller struct {
	Servers
	orders chan Order
	writer sync.WaitGroup
}

// buy takes 60 ms, so that the sale lasts longer than a failover takes to begin.
func (s *forgetfulSeller) buy(ctx context.Context, o Order) error {
	time.Sleep(60 * time.Millisecond)
	left, err := s.Redis.Decr(ctx, countKey(o.SKUs[0])).Result()
	if err == nil && left < 0 {
		err = errSoldOut
	}
	if err == nil {
		s.orders <- o
	}
	return err
}

// write inserts 150 orders at a time, and at the end the rest.
func (s *forgetfulSeller) write(ctx context.Context) {
	var waiting []Order
	insert := func() {
		if len(waiting) > 0 {
			_ = inTx(ctx, s.DB, func(tx *sql.Tx) error { return insertOrders(ctx, tx, waiting...) })
		}
		waiting = nil
	}
	for o := range s.orders {
		if waiting = append(waiting, o); len(waiting) == 150 {
			insert()
		}
	}
	insert()
}

func (s *forgetfulSeller) close() error {
	close(s.orders)
	s.writer.Wait()
	return nil
}

// newTestbed has a Redis of the test's own, which is emptied.
func newTestbed(t *testing.T) *testbed {
	t.Helper()
	addr := testserver.Start(t, testserver.OpenRedis).Addr()
	return &testbed{one: connected(t, testserver.MySQL(t), addr)}
}

func verdicts(outcomes []Outcome) map[string]string {
	all := map[string]string{}
	for _, o := range outcomes {
		all[o.Fault] = o.Verdict
	}
	return all
}

// A right design shows nothing, whatever is broken.
func TestBreak_right(t *testing.T) {
	t.Parallel()
	row := &Row{Design: rowFirst()}
	testserver.Must(t, newTestbed(t).breakAll(t.Context(), row, 300))
	want := map[string]string{"kill -9": unharmed, "kill -9 at the end": unharmed, "FLUSHALL": unharmed}
	if got := verdicts(row.Faults); row.Tries != 1 || !maps.Equal(got, want) {
		t.Errorf("got %v by try %d, want %v by the first:\n%+v", got, row.Tries, want, row.Faults)
	}
	for _, o := range row.Faults {
		soldAfter := o.Fault != "kill -9 at the end"
		if o.Operator != unharmed || o.Left > 0 || o.Acknowledged > 300 || (o.Seconds != nil) != soldAfter {
			t.Errorf("%s: got %+v, want all units in orders, and nothing to do", o.Fault, o)
		}
	}
}

// A design that answers before it writes loses orders with its process. If Redis forgets the count, it sells too
// little.
func TestBreak_wrong(t *testing.T) {
	t.Parallel()
	row := &Row{Design: forgetful()}
	testserver.Must(t, newTestbed(t).breakAll(t.Context(), row, 1600))
	want := map[string]string{
		"kill -9": "lost, undersold", "kill -9 at the end": "lost, undersold", "FLUSHALL": "undersold",
	}
	if got := verdicts(row.Faults); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v:\n%+v", got, want, row.Faults)
	}
	for _, o := range row.Faults {
		if o.Operator == unharmed {
			t.Errorf("%s: want something to do for the operator of %+v", o.Fault, o)
		}
	}
}

// A replica that has not learned of sales makes a design sell units again, unless the database has the last word and
// the buyer is answered after it.
func TestBreak_failover(t *testing.T) {
	t.Parallel()
	g := newTestbed(t)
	g.sentinel = testserver.Start(t, testserver.OpenRedisSentinel)
	g.group = connected(t, g.one.DSN, g.sentinel.URL)
	last := allFaults()[len(allFaults())-1]
	for _, c := range []struct {
		design Design
		supply int64
		want   string
	}{{forgetful(), 1600, "oversold"}, {inStream("late"), 4000, unharmed}} {
		o, err := g.breakBy(t.Context(), c.design, last, c.supply)
		testserver.Must(t, err)
		if o.Fault != "failover" || o.Verdict != c.want || o.Seconds == nil {
			t.Errorf("%s: got %+v, want %s", c.design.Name, o, c.want)
		}
	}
}

// A seller's process is gone after each end: killed, or asked to end.
func TestSeller_ends(t *testing.T) {
	t.Parallel()
	g := newTestbed(t)
	s := &sale{testbed: g, design: rowFirst(), on: g.one, sku: "ends"}
	testserver.Must(t, s.design.putUpForSale(t.Context(), s.on, map[string]int64{s.sku: 1_000_000}))
	for _, by := range []os.Signal{os.Kill, os.Interrupt} {
		s.sold.Store(0)
		testserver.Must(t, s.start(t.Context()))
		s.await(t.Context(), func() bool { return s.sold.Load() > 0 })
		s.end(by)
		if len(s.receipts) == 0 || s.receipts[0].Answer != sold {
			t.Errorf("%v: the receipts are %+v, want a sale: %s", by, s.receipts, &s.log)
		}
		if s.seller.ProcessState.Success() != (by == os.Interrupt) {
			t.Errorf("%v: got %v: %s", by, s.seller.ProcessState, &s.log)
		}
		if err := syscall.Kill(s.seller.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%v: process %d: got %v, want it gone", by, s.seller.Process.Pid, err)
		}
	}
}

// A seller that cannot start says why.
func TestBreak_no_design(t *testing.T) {
	t.Parallel()
	unknown := rowFirst()
	unknown.Name = "unknown"
	const want = `there is no design "unknown"`
	err := newTestbed(t).breakAll(t.Context(), &Row{Design: unknown}, 300)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

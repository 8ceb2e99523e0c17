package order_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// line is a lane of mugs in front of which the lease is held, so that a test decides who is in the next batch.
type line struct {
	*bundle
	begun atomic.Int64 // transactions
	lease *lock.Lease

	all     sync.WaitGroup
	served  atomic.Int64
	answers []*placed // in the order of arrival
}

type placed struct {
	order    order.Order
	replayed bool
	err      error
}

// byLanes makes lanes the default strategy.
func byLanes(c *config) { c.strategy = "lanes" }

// noEarly keeps lanes from beginning transactions before they have the lease.
func noEarly(c *config) { c.lane.Early = 0 }

// stand returns the line of an instance.
func stand(t *testing.T, db *store.Store, change ...func(*config)) *line {
	t.Helper()
	l := &line{bundle: setup(t, db, append([]func(*config){byLanes, noEarly}, change...)...)}
	l.spy.beforeTx = func() error { l.begun.Add(1); return nil }
	return l
}

// hold takes the lease, so that the lane has to wait.
func (l *line) hold(t *testing.T) *line {
	t.Helper()
	var err error
	if l.lease, err = l.shared.Acquire(t.Context(), "sku:mug"); err != nil {
		t.Fatal(err)
	}
	return l
}

// join puts a request at the end of the lane.
func (l *line) join(ctx context.Context, t *testing.T, r order.Request) {
	t.Helper()
	a, before := new(placed), l.lanes.Queued()
	l.answers = append(l.answers, a)
	l.all.Go(func() {
		a.order, a.replayed, a.err = l.Place(ctx, r)
		l.served.Add(1)
	})
	await(t, "queued", before+1, l.lanes.Queued)
}

// serve lets the lane have the lease and waits for all answers.
func (l *line) serve(t *testing.T) {
	t.Helper()
	if err := l.lease.Release(); err != nil {
		t.Error(err)
	}
	l.all.Wait()
}

// want compares an answer: an order of its own buyer, or an error.
func (l *line) want(t *testing.T, i int, by string, want error) {
	t.Helper()
	got := l.answers[i]
	wantErr(t, fmt.Sprint(i), got.err, want)
	if want == nil && got.order.Buyer != by {
		t.Errorf("%d: got the order of %q, want that of %q", i, got.order.Buyer, by)
	}
}

func (l *line) wantBegun(t *testing.T, want int64) {
	t.Helper()
	if got := l.begun.Load(); got != want {
		t.Errorf("%d transactions, want %d", got, want)
	}
}

func mugs(buyer, key string, units int64) order.Request {
	return purchase(buyer, key, "mug", units)
}

func nth(i int) string { return fmt.Sprint("buyer-", i) }

// deliver brings units of a SKU in.
func (l *line) deliver(t *testing.T, sku string, units int64) {
	t.Helper()
	d, err := stock.NewDelivery(sku, uuid.NewString(), units, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.db.Supply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// await waits until a number is what the test wants.
func await(t *testing.T, what string, want int, got func() int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); got() != want; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d, want %d", what, got(), want)
		}
	}
}

// wantErr fails the test unless err is want.
func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// "A leader takes the lease of the SKU, sells to all buyers in the queue by then": the buyers in the queue
// cost one transaction together, and each is answered with its own order.
func TestLanes_oneTransaction(t *testing.T) {
	t.Parallel()
	const buyers, units = 200, 120
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		l := stand(t, db)
		l.supply(t, "mug", units)
		l.hold(t)
		for i := range buyers {
			l.join(t.Context(), t, mugs(nth(i), "key", 1))
		}
		l.serve(t)
		for i := range buyers {
			if i >= units { // in the order of arrival
				l.want(t, i, "", order.ErrSoldOut)
				continue
			}
			l.want(t, i, nth(i), nil)
			again, err := l.Order(t.Context(), nth(i), l.answers[i].order.ID)
			if diff := cmp.Diff(l.answers[i].order, again); diff != "" || err != nil {
				t.Errorf("%d: %v (-answered +there):\n%s", i, err, diff)
			}
		}
		l.wantBegun(t, 1)
		l.wantLevel(t, "mug", 0, units)
		l.audit(t, "mug")
	})
}

// 512 buyers at once, on three instances: exactly the stock is sold.
func TestLanes_crowd(t *testing.T) {
	t.Parallel()
	const buyers, units = 512, 400
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		first := setup(t, db, byLanes)
		shops := []*bundle{first, first.another(t), first.another(t)}
		first.supply(t, "mug", units)
		var sold, refused atomic.Int64
		atOnce(buyers, func(i int) {
			o, replayed, err := shops[i%3].Place(t.Context(), mugs(nth(i), "key", 1))
			switch {
			case err == nil && o.Buyer == nth(i) && !replayed:
				sold.Add(1)
			case errors.Is(err, order.ErrSoldOut):
				refused.Add(1)
			default:
				t.Errorf("%d: got %+v, replayed %v, %v", i, o, replayed, err)
			}
		})
		if sold.Load() != units || refused.Load() != buyers-units {
			t.Errorf("%d sold, %d refused, want %d and %d", sold.Load(), refused.Load(), units, buyers-units)
		}
		if a := first.audit(t, "mug"); a.Orders != units || a.Level.Available != 0 {
			t.Errorf("account %+v, want %d orders", a, units)
		}
	})
}

// "One failed order does not fail the batch." "A buyer whose ctx ends in the queue leaves it, and nothing was changed."
func TestLanes_oneFails(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		l := stand(t, db)
		l.supply(t, "mug", 20)
		first := l.by("redis").mustPlace(t, mugs("ann", "first", 1))
		l.begun.Store(0)
		l.hold(t)
		going, leave := context.WithCancel(t.Context())
		l.join(t.Context(), t, mugs("bob", "key", 2))
		l.join(t.Context(), t, mugs("ann", "first", 1)) // again
		l.join(t.Context(), t, mugs("ann", "first", 3)) // another request
		l.join(going, t, mugs("gus", "key", 1))
		l.join(t.Context(), t, mugs("max", "key", 100)) // too much
		l.join(t.Context(), t, mugs("bob", "key", 2))   // the twin of the first
		l.join(t.Context(), t, mugs("bob", "key", 3))   // the key of the first
		l.join(t.Context(), t, mugs("eve", "key", 2))
		leave()
		await(t, "queued", 7, l.lanes.Queued)
		l.serve(t)

		for i, c := range []struct {
			buyer    string
			replayed bool
			err      error
		}{
			{buyer: "bob"}, {buyer: "ann", replayed: true}, {err: order.ErrKeyReused}, {err: context.Canceled}, {err: order.ErrSoldOut},
			{buyer: "bob", replayed: true}, {err: order.ErrKeyReused}, {buyer: "eve"},
		} {
			l.want(t, i, c.buyer, c.err)
			if l.answers[i].replayed != c.replayed {
				t.Errorf("%d: replayed %v, want %v", i, l.answers[i].replayed, c.replayed)
			}
		}
		if diff := cmp.Diff(first, l.answers[1].order); diff != "" {
			t.Errorf("replay (-first +again):\n%s", diff)
		}
		if diff := cmp.Diff(l.answers[0].order, l.answers[5].order); diff != "" {
			t.Errorf("twin (-first +second):\n%s", diff)
		}
		wantErr(t, "gone", l.answers[3].err, lock.ErrNotAcquired)
		l.wantBegun(t, 1)
		l.wantLevel(t, "mug", 15, 5)
		l.audit(t, "mug")
		l.mustPlace(t, mugs("gus", "key", 1)) // the keys were left free
		l.mustPlace(t, mugs("max", "key", 1))
	})
}

// "In the order of their arrival"; "one that wants more than is left is refused; a smaller order behind it may still
// fit".
func TestLanes_arrival(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		l := stand(t, db)
		l.supply(t, "mug", 6)
		l.hold(t)
		asked := []struct {
			units int64
			want  error
		}{{3, nil}, {4, order.ErrSoldOut}, {2, nil}, {2, order.ErrSoldOut}, {1, nil}, {1, order.ErrSoldOut}}
		for i, a := range asked {
			l.join(t.Context(), t, mugs(nth(i), "key", a.units))
		}
		l.serve(t)
		for i, a := range asked {
			l.want(t, i, nth(i), a.want)
		}
		l.wantLevel(t, "mug", 0, 6)
		l.audit(t, "mug")
	})
}

// What the batch has read may be stale when it writes: a buyer without a lease took units, or used a key. It reads
// again, and goes on.
func TestLanes_readsAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		for name, c := range map[string]struct {
			units  int64
			faster order.Request
			want   []error // of three who want two units each
		}{
			"units": {7, mugs("zoe", "other", 3), []error{nil, nil, order.ErrSoldOut}},
			"key":   {7, mugs("buyer-1", "key", 2), []error{nil, nil, nil}},
			"last":  {4, mugs("buyer-1", "key", 2), []error{nil, nil, order.ErrSoldOut}},
		} {
			t.Run(name, func(t *testing.T) {
				l := stand(t, db)
				l.reset(t)
				l.supply(t, "mug", c.units)
				l.hold(t)
				for i := range c.want {
					l.join(t.Context(), t, mugs(nth(i), "key", 2))
				}
				other := l.another(t).by("conditional")
				var faster order.Order
				l.spy.beforeTx = func() error {
					if l.begun.Add(1) == 1 {
						faster = other.mustPlace(t, c.faster)
					}
					return nil
				}
				l.serve(t)
				for i, want := range c.want {
					l.want(t, i, nth(i), want)
				}
				if twin := l.answers[1]; c.faster.Buyer == "buyer-1" && (!twin.replayed || twin.order.ID != faster.ID) {
					t.Errorf("twin: got %+v, want a replay of %s", twin, faster.ID)
				}
				l.wantBegun(t, 2)
				l.audit(t, "mug")
			})
		}
	})
}

// "An order over a limit is left out, and so is one whose buyer's row another transaction has locked": the other buyers are
// served meanwhile, and that buyer afterwards.
func TestLanes_lockedBuyer(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		for _, name := range []string{"row that is there", "row that is made"} {
			l := stand(t, kind.New(t, "innodb_lock_wait_timeout=600").Migrated(t), func(o *config) { o.maxOpen = 10 })
			l.supply(t, "mug", 20)
			lock := func(tx order.Tx) error { _, err := tx.LockBuyers("buyer-2"); return err }
			if name == "row that is there" {
				wantErr(t, "first", l.db.InTx(t.Context(), lock), nil)
			}
			l.hold(t)
			for i := range 5 {
				l.join(t.Context(), t, mugs(nth(i), "key", 1))
			}
			err := l.db.InTx(t.Context(), func(tx order.Tx) error {
				if err := lock(tx); err != nil {
					return err
				}
				if err := l.lease.Release(); err != nil {
					return err
				}
				await(t, "served", 4, func() int { return int(l.served.Load()) })
				return nil
			})
			wantErr(t, name, err, nil)
			l.all.Wait()
			for i := range 5 {
				l.want(t, i, nth(i), nil)
			}
			l.wantLevel(t, "mug", 15, 5)
			l.audit(t, "mug")
		}
	})
}

// A key that another transaction has claimed makes its buyer wait alone, where there is no limit whose row comes first.
func TestLanes_lockedKey(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		l := stand(t, kind.New(t, "innodb_lock_wait_timeout=1").Migrated(t))
		l.supply(t, "mug", 20)
		l.hold(t)
		for i := range 5 {
			l.join(t.Context(), t, mugs(nth(i), "key", 1))
		}
		enough := errors.New("enough")
		err := l.db.InTx(t.Context(), func(tx order.Tx) error {
			twin := order.Order{ID: "twin", Buyer: "buyer-2", Key: "key", CreatedAt: time.Now().UTC()}
			if _, err := tx.ClaimKeys(&order.Draft{Order: twin}); err != nil {
				return err
			}
			l.serve(t)
			return enough
		})
		wantErr(t, "transaction", err, enough)
		for i := range 5 {
			if i == 2 {
				l.want(t, i, "", order.ErrInProgress)
				continue
			}
			l.want(t, i, nth(i), nil)
		}
		l.wantLevel(t, "mug", 16, 4)
		l.audit(t, "mug")
	})
}

// "An order over a limit is left out": no buyer behind it is refused because of it.
func TestLanes_limits(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		for name, c := range map[string]struct {
			maxOpen  int
			perBuyer int64
			want     error
		}{
			"open orders":   {maxOpen: 1, want: order.ErrTooManyOpen},
			"units of them": {perBuyer: 1, want: order.ErrPurchaseLimit},
		} {
			t.Run(name, func(t *testing.T) {
				l := stand(t, db, func(o *config) { o.maxOpen = c.maxOpen })
				l.reset(t)
				l.supply(t, "mug", 8)
				l.limit(t, "mug", c.perBuyer)
				l.by("redis").mustPlace(t, mugs("ann", "first", 1))
				l.begun.Store(0)
				l.hold(t)
				buyers := []string{"ann", "ann", "bob", "bob", "bob", "eve", "zoe", "max", "ann"}
				for i, key := range []string{"second", "second", "first", "second", "third", "first", "first", "first", "first"} {
					l.join(t.Context(), t, mugs(buyers[i], key, 1)) // the last one is a replay, and no new order
				}
				l.serve(t)
				for i, want := range []error{c.want, c.want, nil, c.want, c.want, nil, nil, nil, nil} {
					l.want(t, i, buyers[i], want)
				}
				l.wantBegun(t, 3) // bob's others, and ann's second when it is repeated, wait for the next batch
				l.wantLevel(t, "mug", 3, 5)
			})
		}
	})
}

// "(and is the next batch's if it is over it only with others of the batch, which may yet fail)".
func TestLanes_limitsBehindOneGone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		l := stand(t, db, func(c *config) { c.maxOpen = 1 })
		l.supply(t, "mug", 5)
		l.limit(t, "mug", 1)
		l.hold(t)
		gone, leave := context.WithCancel(t.Context())
		l.spy.aroundTx = func(tx order.Tx) order.Tx { leave(); return tx }
		l.join(gone, t, mugs("ann", "first", 1))
		l.join(t.Context(), t, mugs("ann", "second", 1))
		l.serve(t)
		l.want(t, 0, "ann", context.Canceled)
		l.want(t, 1, "ann", nil)
		l.wantLevel(t, "mug", 4, 1)
	})
}

// logged is a Tx that keeps the orders it inserts.
type logged struct {
	order.Tx
	orders *[]order.Order
}

func (l logged) Insert(orders ...order.Order) error {
	*l.orders = append(*l.orders, orders...)
	return l.Tx.Insert(orders...)
}

// "Between two batches the lease is given back": a cart that came while the first batch stood in the queue is served
// before the second. A batch has 256 buyers at most.
func TestLanes_fairToCarts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		var placed []string // by transaction, which follow one another: all need the lease of the mug
		var orders []order.Order
		l := stand(t, db)
		l.spy.aroundTx = func(tx order.Tx) order.Tx { orders = nil; return logged{tx, &orders} }
		l.spy.afterTx = func(error) { placed = append(placed, fmt.Sprint(len(orders), " ", orders[0].SKUs())) }
		l.supply(t, "mug", 1000)
		l.supply(t, "hat", 1000)
		l.hold(t)
		for i := range 300 {
			l.join(t.Context(), t, mugs(nth(i), "key", 1))
		}
		await(t, "leaders that wait", 1, l.shared.Queued)
		l.all.Go(func() {
			cart := mugs("ann", "cart", 1)
			cart.Lines = append(cart.Lines, order.RequestLine{SKU: "hat", Units: 1})
			_, _, err := l.Place(t.Context(), cart)
			wantErr(t, "cart", err, nil)
		})
		await(t, "leaders and carts that wait", 2, l.shared.Queued)
		l.serve(t)
		if diff := cmp.Diff([]string{"256 [mug]", "1 [mug hat]", "44 [mug]"}, placed); diff != "" {
			t.Errorf("transactions (-want +got):\n%s", diff)
		}
		l.wantLevel(t, "mug", 699, 301)
	})
}

// "One that a batch has taken waits for the result [...]. An order is left out if the ctx of its buyer has ended before
// the units are locked".
func TestLanes_goneWhileServed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		l := stand(t, db)
		l.supply(t, "mug", 5)
		l.hold(t)
		early, leaveEarly := context.WithCancel(t.Context())
		late, leaveLate := context.WithCancel(t.Context())
		l.spy.aroundTx = func(tx order.Tx) order.Tx { leaveEarly(); return tx }
		l.spy.beforeCommit = leaveLate
		l.join(early, t, mugs("ann", "key", 1))
		l.join(late, t, mugs("gus", "key", 1))
		l.join(t.Context(), t, mugs("eve", "key", 1))
		l.serve(t)
		l.want(t, 0, "ann", context.Canceled)
		l.want(t, 1, "gus", nil)
		l.want(t, 2, "eve", nil)
		l.wantLevel(t, "mug", 3, 2)
	})
}

// Without a lease, a buyer whose key has bought before is answered with its order; the others are told why there is
// none.
func TestLanes_noLease(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		holder := setup(t, db, byLanes)
		holder.supply(t, "mug", 5)
		first := holder.mustPlace(t, mugs("ann", "first", 1))
		impatient := holder.another(t, func(c *config) { c.maxWait = 50 * time.Millisecond })
		err := holder.shared.Do(t.Context(), "sku:mug", func(context.Context, *lock.Lease) error {
			atOnce(2, func(i int) {
				o, replayed, err := impatient.Place(t.Context(), mugs("ann", []string{"first", "second"}[i], 1))
				if i == 0 && (err != nil || !replayed || cmp.Diff(first, o) != "") {
					t.Errorf("replay: got %+v, replayed %v, %v", o, replayed, err)
				}
				if i == 1 && (!errors.Is(err, lock.ErrTimeout) || !errors.Is(err, lock.ErrNotAcquired)) {
					t.Errorf("new: got %v, want ErrTimeout", err)
				}
			})
			return nil
		})
		wantErr(t, "hold", err, nil)
		holder.wantLevel(t, "mug", 4, 1)
	})
}

// What fails for the whole batch is answered to all of it, and changes no row.
func TestLanes_allFail(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		l := stand(t, db)
		l.supply(t, "mug", 10)
		l.spy.beforeTx = func() error { return order.ErrBusy }
		atOnce(10, func(i int) {
			_, _, err := l.Place(t.Context(), mugs(nth(i), "key", 1))
			wantErr(t, "database is busy", err, order.ErrBusy)
			_, _, err = l.Place(t.Context(), purchase(nth(i), "key", "hat", 1))
			wantErr(t, "unknown SKU", err, order.ErrUnknownSKU)
		})
		l.wantLevel(t, "mug", 10, 0)
	})
}

// "MaxQueue is how many buyers of one SKU may wait": one more is refused at once, and those of another SKU have a lane
// of their own. "Close answers the waiting buyers with lock.ErrClosed [...] and lets no more buyers in."
func TestLanes_fullThenClosed(t *testing.T) {
	t.Parallel()
	l := stand(t, storetest.SQLite(t), func(c *config) { c.lane.MaxQueue = 2 })
	l.supply(t, "mug", 5)
	l.supply(t, "hat", 5)
	l.hold(t)
	l.join(t.Context(), t, mugs("ann", "key", 1))
	l.join(t.Context(), t, mugs("bob", "key", 1))
	_, _, err := l.Place(t.Context(), mugs("eve", "key", 1))
	wantErr(t, "third", err, lock.ErrQueueFull)
	wantErr(t, "third", err, lock.ErrNotAcquired)
	l.mustPlace(t, purchase("eve", "key", "hat", 1))
	l.lanes.Close()
	l.all.Wait()
	l.want(t, 0, "", lock.ErrClosed)
	_, _, err = l.Place(t.Context(), mugs("zoe", "key", 1))
	wantErr(t, "after Close", err, lock.ErrClosed)
	l.lanes.Close()
	if err := l.lease.Release(); err != nil {
		t.Error(err)
	}
	l.wantLevel(t, "mug", 5, 0)
}

// panicking panics where a test says, while it is armed.
type panicking struct {
	where string
	armed atomic.Bool
}

func (p *panicking) at(where string) {
	if p.where == where && p.armed.Load() {
		panic("boom")
	}
}

type panickingLocker struct {
	strategy.Locker
	*panicking
}

func (l panickingLocker) AcquireAll(ctx context.Context, keys ...string) (strategy.Leases, error) {
	l.at("lock")
	return l.Locker.AcquireAll(ctx, keys...)
}

// "A panic leaves no buyer without an answer and no lane without a leader": a panic is reported
// with its stack, the lease is free, and the same requests again get one result each.
func TestLanes_panic(t *testing.T) {
	t.Parallel()
	const buyers = 5
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		for _, where := range []string{"lock", "keys", "begin", "commit", "answer"} {
			t.Run(where, func(t *testing.T) {
				boom := &panicking{where: where}
				var panics atomic.Int64
				l := stand(t, db, func(c *config) {
					c.wrap = func(l strategy.Locker) strategy.Locker { return panickingLocker{l, boom} }
					c.lane.SnapshotFor = 1 // each batch reads
					c.lane.OnPanic = func(err error) {
						panics.Add(1)
						if text := err.Error(); !strings.Contains(text, "panic: boom") || !strings.Contains(text, "panicking") {
							t.Errorf("reported %v, want the panic and its stack", err)
						}
					}
				})
				l.reset(t)
				l.supply(t, "mug", 2*buyers)
				l.spy.beforeClaims = func() { boom.at("keys") }
				l.spy.beforeTx = func() error { boom.at("begin"); return nil }
				l.spy.beforeCommit = func() { boom.at("commit") }
				l.spy.afterTx = func(error) { boom.at("answer") }
				l.mustPlace(t, mugs("first", "key", 1)) // the SKU is known to be there
				boom.armed.Store(true)
				atOnce(buyers, func(i int) {
					_, _, err := l.Place(t.Context(), mugs(nth(i), "key", 1))
					if err == nil || strings.Contains(err.Error(), "goroutine") || !strings.Contains(err.Error(), "panic: boom") {
						t.Errorf("got %v, want the panic without its stack", err)
					}
				})
				boom.armed.Store(false)
				if panics.Load() == 0 {
					t.Error("the panic was not reported")
				}
				for i := range buyers {
					_, replayed, err := l.Place(t.Context(), mugs(nth(i), "key", 1))
					if err != nil || replayed != (where == "answer") {
						t.Errorf("%d again: replayed %v, %v", i, replayed, err)
					}
				}
				l.wantLevel(t, "mug", buyers-1, buyers+1)
				l.audit(t, "mug")
			})
		}
	})
}

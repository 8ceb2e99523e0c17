package order_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// counts is what an instance reads and begins.
type counts struct{ levels, claims, begun int }

// count counts what l does from now on.
func (l *line) count() *counts {
	n := &counts{}
	l.spy.beforeLevels = func() { n.levels++ }
	l.spy.beforeClaims = func() { n.claims++ }
	l.spy.beforeTx = func() error { n.begun++; return nil }
	return n
}

// want compares what was done since the last call.
func (n *counts) want(t *testing.T, what string, reads, begun int) {
	t.Helper()
	if diff := cmp.Diff([]int{reads, reads, begun}, []int{n.levels, n.claims, n.begun}); diff != "" {
		t.Errorf("%s: reads of stock, reads of keys, transactions (-want +got):\n%s", what, diff)
	}
	*n = counts{}
}

// recently returns an instance that has just sold a mug by a lane, and whose clock stands still unless the test sets
// it.
func recently(t *testing.T, db *store.Store, known func(l *line), change ...func(*config)) (l *line, n *counts, clock *atomic.Int64) {
	t.Helper()
	start, clock := time.Now(), new(atomic.Int64)
	l = stand(t, db, append(change, func(c *config) {
		c.lane.Now = func() time.Time { return start.Add(time.Duration(clock.Load())) }
	})...)
	l.reset(t)
	l.supply(t, "mug", 5)
	if known != nil {
		known(l)
	}
	n = l.count()
	l.mustPlace(t, mugs("first", "first", 1))
	n.want(t, "first", 1, 1)
	return l, n, clock
}

// "Consecutive batches reuse the snapshot of the stock, for a second at most."
func TestLanes_snapshot(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		l, n, clock := recently(t, db, nil)
		for i := range 3 {
			l.mustPlace(t, mugs("ann", fmt.Sprint(i), 1))
			n.want(t, fmt.Sprint(i), 0, 1)
		}
		clock.Store(int64(time.Second))
		l.mustPlace(t, mugs("ann", "later", 1))
		n.want(t, "later", 1, 1)
		l.wantLevel(t, "mug", 0, 5)
		l.audit(t, "mug")
	})
}

// "Where the plan proves stale, the batch reads after all: the snapshot is used only to accept orders, never to refuse
// them." Nothing is sold, refused or priced by what was true before.
func TestLanes_staleSnapshot(t *testing.T) {
	t.Parallel()
	other := func(units int64) func(t *testing.T, l *line) {
		return func(t *testing.T, l *line) {
			l.another(t).by("redis").mustPlace(t, mugs("ann", "other", units))
		}
	}
	sql := func(statement string) func(t *testing.T, l *line) {
		return func(t *testing.T, l *line) { l.exec(t, statement) }
	}
	// What is so before and what happens on another instance after the lane read, what is asked for then, and how often
	// that reads and begins a transaction.
	cases := map[string]struct {
		limit     int64
		meanwhile func(t *testing.T, l *line)
		ask       order.Request
		reads     int
		begun     int
		want      error
		replayed  bool
		total     int64
	}{
		"nothing changed":         {ask: mugs("ann", "key", 4), begun: 1, total: 4 * 1250},
		"more than there were":    {ask: mugs("ann", "key", 5), reads: 1, want: order.ErrSoldOut},
		"sold elsewhere":          {meanwhile: other(3), ask: mugs("bob", "key", 2), reads: 1, begun: 1, want: order.ErrSoldOut},
		"sold elsewhere, in part": {meanwhile: other(3), ask: mugs("bob", "key", 1), begun: 1, total: 1250},
		"came back": {
			meanwhile: func(t *testing.T, l *line) { l.deliver(t, "mug", 3) },
			ask:       mugs("ann", "key", 7), reads: 1, begun: 1, total: 7 * 1250,
		},
		"price":    {meanwhile: sql("UPDATE skus SET price_minor = 2000"), ask: mugs("ann", "key", 2), reads: 1, begun: 2, total: 4000},
		"currency": {meanwhile: sql("UPDATE skus SET currency = 'CHF'"), ask: mugs("ann", "key", 2), reads: 1, begun: 2, total: 2500},
		"limit": {
			meanwhile: func(t *testing.T, l *line) { l.limit(t, "mug", 1) },
			ask:       mugs("ann", "key", 2), reads: 1, begun: 2, want: order.ErrPurchaseLimit,
		},
		"again":                 {ask: mugs("first", "first", 1), reads: 1, begun: 1, replayed: true, total: 1250},
		"again, otherwise":      {ask: mugs("first", "first", 2), reads: 1, begun: 1, want: order.ErrKeyReused},
		"a limit that is known": {limit: 2, ask: mugs("first", "key", 2), begun: 1, want: order.ErrPurchaseLimit},
		"again, at the limit":   {limit: 1, ask: mugs("first", "first", 1), reads: 1, begun: 1, replayed: true, total: 1250},
		"again, and sold out":   {meanwhile: other(4), ask: mugs("first", "first", 1), reads: 1, begun: 1, replayed: true, total: 1250},
	}
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				l, n, _ := recently(t, db, func(l *line) { l.limit(t, "mug", c.limit) })
				if c.meanwhile != nil {
					c.meanwhile(t, l)
				}
				o, replayed, err := l.Place(t.Context(), c.ask)
				wantErr(t, "answer", err, c.want)
				if replayed != c.replayed || o.Total.Minor != c.total {
					t.Errorf("got a total of %d, replayed %v, want %d, %v", o.Total.Minor, replayed, c.total, c.replayed)
				}
				n.want(t, name, c.reads, c.begun)
				l.audit(t, "mug")
			})
		}
	})
}

// watched is a Tx that reports how many orders were inserted.
type watched struct {
	order.Tx
	inserted chan int
}

func (w watched) Insert(orders ...order.Order) error {
	err := w.Tx.Insert(orders...)
	w.inserted <- len(orders)
	return err
}

// early is a line whose next batch begins its transaction before it has the lease: one of 20 mugs was sold a moment
// ago, and the lease is held again.
type early struct {
	*line
	inserted chan int   // orders, as they are
	over     chan error // what came of a transaction
	levels   atomic.Int64
}

func newEarly(t *testing.T, kind storetest.Kind, change ...func(*config)) *early {
	t.Helper()
	e := &early{inserted: make(chan int, 99), over: make(chan error, 99)}
	e.line = stand(t, kind.New(t, "").Migrated(t), append([]func(*config){func(c *config) {
		c.lane.Early, c.lane.SnapshotFor = 1, time.Hour // a slow machine ends none
	}}, change...)...)
	e.supply(t, "mug", 20)
	e.mustPlace(t, mugs("first", "key", 1))
	e.hold(t)
	e.spy.aroundTx = func(tx order.Tx) order.Tx { return watched{tx, e.inserted} }
	e.spy.afterTx = func(err error) { e.over <- err }
	e.spy.beforeLevels = func() { e.levels.Add(1) }
	return e
}

// join adds a buyer, whose order is inserted.
func (e *early) join(t *testing.T, r order.Request) {
	t.Helper()
	a := new(placed)
	e.answers = append(e.answers, a)
	e.all.Go(func() { a.order, a.replayed, a.err = e.Place(t.Context(), r) })
	e.wantInserted(t, 1)
}

// joinOnly adds a buyer whom the early transaction leaves in the queue.
func (e *early) joinOnly(t *testing.T, r order.Request) { t.Helper(); e.line.join(t.Context(), t, r) }

func (e *early) wantInserted(t *testing.T, want int) {
	t.Helper()
	select {
	case got := <-e.inserted:
		if got != want {
			t.Errorf("%d orders were inserted, want %d", got, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("no order was inserted, want %d", want)
	}
}

func (e *early) wantOver(t *testing.T, want error) {
	t.Helper()
	select {
	case err := <-e.over:
		wantErr(t, "transaction", err, want)
	case <-time.After(30 * time.Second):
		t.Fatalf("no transaction ended, want %v", want)
	}
}

// "Such a batch also begins its transaction while it waits for the lease, and writes its orders [...] and those of
// buyers who arrive meanwhile."
func TestLanes_early(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		e := newEarly(t, kind)
		e.join(t, mugs("ann", "key", 2))
		e.join(t, mugs("bob", "key", 2))
		e.wantLevel(t, "mug", 19, 1)
		if mine, err := e.Orders(t.Context(), "ann", "", 10); err != nil || len(mine) > 0 {
			t.Errorf("before the lease is held: got %v, %v, want no order", mine, err)
		}
		e.serve(t)
		e.want(t, 0, "ann", nil)
		e.want(t, 1, "bob", nil)
		e.wantOver(t, nil)
		if e.levels.Load() != 0 || len(e.over) > 0 {
			t.Errorf("read the stock %d times, %d more transactions, want none", e.levels.Load(), len(e.over))
		}
		e.wantLevel(t, "mug", 15, 5)
		e.audit(t, "mug")
	})
}

// Where something changed since the snapshot, or an order does not fit it, all get the answer of a batch that reads.
func TestLanes_earlyInVain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// What happens when two mugs each for ann and bob are inserted.
		meanwhile func(t *testing.T, e *early)
		ann, bob  error
		price     int64
		left      int64 // of the 19 that there were
	}{
		"more wanted than there is": {
			meanwhile: func(t *testing.T, e *early) { e.joinOnly(t, mugs("eve", "key", 16)) },
			price:     1250, left: 15,
		},
		"another price": {
			meanwhile: func(t *testing.T, e *early) { e.exec(t, "UPDATE skus SET price_minor = 2000") },
			price:     2000, left: 15,
		},
		"a key is used": {
			meanwhile: func(t *testing.T, e *early) {
				e.another(t).by("conditional").mustPlace(t, mugs("ann", "key", 2))
			},
			price: 1250, left: 15,
		},
		"a limit": {
			meanwhile: func(t *testing.T, e *early) { e.limit(t, "mug", 1) },
			ann:       order.ErrPurchaseLimit, bob: order.ErrPurchaseLimit, left: 19,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
				e := newEarly(t, kind)
				e.join(t, mugs("ann", "key", 2))
				e.join(t, mugs("bob", "key", 2))
				c.meanwhile(t, e)
				e.serve(t)
				e.want(t, 0, "ann", c.ann)
				e.want(t, 1, "bob", c.bob)
				if got := e.answers[1].order.Total.Minor; got != 2*c.price {
					t.Errorf("bob is to pay %d, want %d", got, 2*c.price)
				}
				e.wantLevel(t, "mug", c.left, 20-c.left)
				e.audit(t, "mug")
			})
		})
	}
}

// The outcome of an early transaction answers the buyers of that transaction, not those who join the queue while it
// commits.
func TestLanes_earlyFails(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		e := newEarly(t, kind)
		e.join(t, mugs("ann", "key", 2))
		committing, joined := make(chan struct{}), make(chan struct{})
		e.spy.beforeCommit = sync.OnceFunc(func() { close(committing); <-joined })
		failed := false // the lane's transactions are one after the other
		e.spy.answer = func(err error) error {
			if !failed {
				failed, err = true, order.ErrUnknownOutcome
			}
			return err
		}
		if err := e.lease.Release(); err != nil {
			t.Fatal(err)
		}
		<-committing
		e.joinOnly(t, mugs("bob", "key", 1))
		close(joined)
		e.all.Wait()
		e.want(t, 0, "ann", order.ErrUnknownOutcome)
		e.want(t, 1, "bob", nil)
		e.audit(t, "mug")
	})
}

// The orders of an early transaction count for the limits, each for those behind it.
func TestLanes_earlyLimits(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		e := newEarly(t, kind, func(c *config) { c.maxOpen = 2 })
		e.limit(t, "mug", 4)
		asked := []struct {
			buyer, key string
			units      int64
			want       error
		}{
			{"ann", "1", 2, nil},
			{"ann", "2", 2, nil},
			{"ann", "3", 1, order.ErrTooManyOpen},
			{"bob", "1", 3, nil},
			{"bob", "2", 2, order.ErrPurchaseLimit},
			{"first", "2", 3, nil},
		}
		for _, a := range asked {
			e.join(t, mugs(a.buyer, a.key, a.units))
		}
		e.serve(t)
		for i, a := range asked {
			e.want(t, i, a.buyer, a.want)
		}
		e.wantLevel(t, "mug", 9, 11)
		e.audit(t, "mug")
	})
}

// A lane that gets no lease rolls its early transaction back, whether it has waited too long or is closed, or the
// snapshot is too old.
func TestLanes_earlyEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait, keep time.Duration
		end        func(t *testing.T, e *early)
		want       error
	}{
		"waited too long": {5 * time.Second, time.Hour, func(*testing.T, *early) {}, lock.ErrTimeout},
		"closed":          {time.Hour, time.Hour, func(_ *testing.T, e *early) { e.lanes.Close() }, lock.ErrClosed},
		"too old": {time.Hour, 10 * time.Second, func(t *testing.T, e *early) {
			e.over <- <-e.over // the transaction has ended
			e.serve(t)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
				e := newEarly(t, kind, func(o *config) { o.maxWait, o.lane.SnapshotFor = c.wait, c.keep })
				e.join(t, mugs("ann", "key", 2))
				c.end(t, e)
				e.all.Wait()
				e.want(t, 0, "ann", c.want)
				if err := <-e.over; err == nil {
					t.Error("the early transaction was committed")
				}
				sold := int64(1)
				if c.want == nil {
					sold = 3
				} else if err := e.lease.Release(); err != nil {
					t.Error(err)
				}
				e.wantLevel(t, "mug", 20-sold, sold)
				e.audit(t, "mug")
			})
		})
	}
}

// "Early is how many lanes at a time may begin a transaction": the lane of another SKU sells all the same while this
// one has the only one.
func TestLanes_earlyBound(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		e := newEarly(t, kind)
		e.supply(t, "hat", 20)
		e.join(t, mugs("ann", "key", 1))
		for i := range 2 { // the second has a snapshot
			e.mustPlace(t, purchase("bob", fmt.Sprint(i), "hat", 1))
		}
		e.serve(t)
		e.want(t, 0, "ann", nil)
		e.wantLevel(t, "mug", 18, 2)
		e.wantLevel(t, "hat", 18, 2)
	})
}

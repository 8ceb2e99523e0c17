package order_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// "One transaction, for any SKUs": carts, in any order of their lines, and single units. "A refused order delays no
// other order of the batch": all others are placed in the same transaction.
func TestBatch_oneFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request order.Request
		before  func(t *testing.T, g *gathering)
		want    error
		replay  bool
	}{
		"sold out":    {request: purchase("eve", "key", "hat", 3), want: order.ErrSoldOut},
		"cart":        {request: order.Request{Buyer: "eve", Key: "key", Lines: []order.Line{{SKU: "mug", Units: 1}, {SKU: "hat", Units: 3}}}, want: order.ErrSoldOut},
		"open orders": {request: purchase("rob", "new", "mug", 1), want: order.ErrTooManyOpen},
		"known key":   {request: purchase("rob", "old", "mug", 1), replay: true},
		"reused key":  {request: purchase("rob", "old", "mug", 2), want: order.ErrKeyReused},
		"limit": {request: purchase("eve", "key", "mug", 2), want: order.ErrPurchaseLimit, before: func(t *testing.T, g *gathering) {
			t.Helper()
			g.limit(t, "mug", 1)
		}},
		"two currencies": {request: order.Request{Buyer: "eve", Key: "key", Lines: []order.Line{{SKU: "mug", Units: 1}, {SKU: "pin", Units: 1}}}, want: order.ErrInvalid},
	} {
		storetest.Each(t, func(t *testing.T, db *store.Store) {
			other := setup(t, db, func(c *config) { c.maxOpen = 1 })
			other.supply(t, "mug", 10)
			other.supply(t, "hat", 2)
			other.supplyAt(t, stock.Money{Minor: 100, Currency: "USD"}, "pin", 2)
			old := other.mustPlace(t, purchase("rob", "old", "mug", 1))
			g := gather(t, db, func(c *config) { c.maxOpen = 1 })
			if c.before != nil {
				c.before(t, g)
			}
			g.supply(t, "cap", 10)
			g.join(t.Context(), t, cart("key", order.Line{SKU: "mug", Units: 1}, order.Line{SKU: "cap", Units: 1}))
			g.join(t.Context(), t, c.request)
			bobs := []order.Line{{SKU: "cap", Units: 3}, {SKU: "mug", Units: 1}}
			g.join(t.Context(), t, order.Request{Buyer: "bob", Key: "key", Lines: bobs})
			g.join(t.Context(), t, purchase("cem", "key", "cap", 4))
			g.serve()
			g.want(t, name+": before it", 0, nil)
			g.want(t, name+": behind it", 2, nil)
			g.want(t, name+": of another SKU", 3, nil)
			g.want(t, name, 1, c.want)
			if c.replay && (g.answers[1].order.ID != old.ID || !g.answers[1].replayed) {
				t.Errorf("%s: got %+v, want the order of the key", name, g.answers[1])
			}
			if n := g.begun.Load(); n != 2 {
				t.Errorf("%s: %d transactions, want 2", name, n)
			}
			g.wantLevel(t, "mug", 7, 3)
			g.wantLevel(t, "cap", 2, 8)
			g.audit(t, "")
			if c.want != nil && !c.replay && c.request.Key != "old" { // "A refusal leaves its key free."
				claims, err := db.UsedKeys(t.Context(), order.BuyerKey{Buyer: c.request.Buyer, Key: c.request.Key})
				if err != nil || len(claims) > 0 {
					t.Errorf("%s: key is on record: %v, %v", name, claims, err)
				}
			}
		})
	}
}

// place "predicts the orders by the last known terms of the SKUs, and mends them later if the terms have changed": an
// order that a batch has not placed, or has placed at other terms, leaves no wrong row.
func TestBatch_mends(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		g := gather(t, db, func(c *config) { c.maxOpen = 2 })
		close(g.gate)
		g.all.Wait()
		g.supply(t, "hat", 10)
		g.supply(t, "mug", 2)
		for _, sku := range []string{"hat", "mug"} { // each is known from here on
			g.mustPlace(t, purchase("ann", sku, sku, 1))
		}
		g.supplyAt(t, stock.Money{Currency: "EUR"}, "pin", 10)
		g.supply(t, "cap", 10)
		for _, sku := range []string{"pin", "cap"} {
			g.mustPlace(t, purchase("fay", sku, sku, 1))
		}
		g.exec(t, "UPDATE skus SET price_minor = 1 WHERE name IN ('hat', 'pin')")
		g.exec(t, "UPDATE skus SET price_minor = 0 WHERE name = 'cap'")
		both := []order.Line{{SKU: "mug", Units: 1}, {SKU: "hat", Units: 1}}
		g.answers = nil
		g.together(t, "hat",
			purchase("bob", "dear", "mug", 2),
			order.Request{Buyer: "cem", Key: "cheaper", Lines: both},
			purchase("dan", "last", "mug", 1),
			purchase("ann", "open", "hat", 1),
			purchase("eve", "cheap", "hat", 1),
			purchase("gus", "no longer free", "pin", 1),
			purchase("hal", "free now", "cap", 1))
		for i, want := range []error{order.ErrSoldOut, nil, order.ErrSoldOut, order.ErrTooManyOpen, nil, nil, nil} {
			g.want(t, fmt.Sprint("order ", i), i, want)
		}
		if o := g.answers[1].order; o.Total.Minor != 1251 {
			t.Errorf("cart costs %v, want 12.51", o.Total)
		}
		for i, want := range map[int]order.Status{1: order.Pending, 4: order.Pending, 5: order.Pending, 6: order.Paid} {
			now, err := g.Order(t.Context(), g.answers[i].order.Buyer, g.answers[i].order.ID)
			if diff := gocmp.Diff(g.answers[i].order, now); err != nil || diff != "" || now.Status != want {
				t.Errorf("order %d: %s, want %s, %v (-answered +there):\n%s", i, now.Status, want, err, diff)
			}
		}
		var orders, lines int
		row := db.DB().QueryRowContext(t.Context(), "SELECT (SELECT COUNT(*) FROM orders), (SELECT COUNT(*) FROM order_lines)")
		if err := row.Scan(&orders, &lines); err != nil || orders != 9 || lines != 10 {
			t.Errorf("%d orders, %d lines, %v; want 9 and 10", orders, lines, err)
		}
		g.audit(t, "")
	})
}

// If the order that took the last units fails, the order behind it is not sold out, but busy.
func TestBatch_failsTogether(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		g := gather(t, db)
		g.supply(t, "mug", 1)
		fail := errors.New("fail")
		g.spy.afterTx = func(error) { g.spy.refuseCommit = fail }
		g.join(t.Context(), t, purchase("ann", "key", "mug", 1))
		g.join(t.Context(), t, purchase("bob", "key", "mug", 1))
		g.serve()
		g.want(t, "first", 0, fail)
		g.want(t, "behind it", 1, order.ErrBusy)
		g.spy.afterTx, g.spy.refuseCommit = nil, nil
		g.mustPlace(t, purchase("bob", "key", "mug", 1))
		g.audit(t, "")
	})
}

// "one order of each": two requests of a buyer are in two batches, also those with the same key.
func TestBatch_oneOrderOfEach(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		g := gather(t, db, func(c *config) { c.maxOpen = 2 })
		g.supply(t, "mug", 10)
		for _, key := range []string{"1", "1", "2", "3"} {
			g.join(t.Context(), t, purchase("ann", key, "mug", 1))
		}
		g.serve()
		g.want(t, "first", 0, nil)
		g.want(t, "twin", 1, nil)
		if g.answers[0].order.ID != g.answers[1].order.ID || !g.answers[1].replayed {
			t.Errorf("twin got %v, want the first's order", g.answers[1])
		}
		g.want(t, "second", 2, nil)
		g.want(t, "third", 3, order.ErrTooManyOpen)
		g.wantLevel(t, "mug", 8, 2)
		g.audit(t, "")
	})
}

// "After a batch that left nothing of a SKU, the next buyers of this SKU wait in a queue of their own. The leader of
// that queue reads the stock without a transaction, and refuses the buyers for as long as nothing is left." It needs no
// lease.
func TestBatch_soldOut(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		var w watched
		g := gather(t, db, w.config)
		g.supply(t, "mug", 1)
		g.join(t.Context(), t, purchase("ann", "key", "mug", 1))
		g.serve()
		begun, asked := g.begun.Load(), w.asked.Load()
		atOnce(20, func(i int) {
			_, _, err := g.Place(t.Context(), purchase(nth(i), "key", "mug", 1))
			wantErr(t, "sold out", err, order.ErrSoldOut)
			if o, replayed, err := g.Place(t.Context(), purchase("ann", "key", "mug", 1)); err != nil || !replayed || o.ID != g.answers[0].order.ID {
				t.Errorf("replay of the last: %v, %v, %v", o, replayed, err)
			}
		})
		if g.begun.Load() != begun || w.asked.Load() != asked {
			t.Errorf("%d transactions refuse, and leases were asked for %d times", g.begun.Load()-begun, w.asked.Load()-asked)
		}
		wantErr(t, "cancel", func() error { _, err := g.Cancel(t.Context(), payment(g.answers[0].order)); return err }(), nil)
		g.mustPlace(t, purchase("bob", "key", "mug", 1))
		g.audit(t, "")
	})
}

// A buyer whose ctx ends in a queue leaves it. One that a batch has taken is left out if its ctx ends before the order
// is decided.
func TestBatch_gone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		g := gather(t, db)
		g.supply(t, "mug", 10)
		ctx, cancel := context.WithCancel(t.Context())
		g.join(ctx, t, purchase("ann", "key", "mug", 1))
		cancel()
		await(t, "queued", 0, g.queued)
		late, end := context.WithCancel(t.Context())
		g.spy.aroundTx = func(tx order.Tx) order.Tx { end(); return tx }
		g.join(late, t, purchase("bob", "key", "mug", 1))
		g.serve()
		for i := range g.answers {
			g.want(t, "gone", i, lock.ErrNotAcquired)
		}
		g.wantLevel(t, "mug", 10, 0)
		g.audit(t, "")
	})
}

// "A panic leaves no request without an answer and no queue without a leader." Close answers those who wait.
func TestBatch_ends(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		g := gather(t, db)
		g.supply(t, "mug", 10)
		for i := range 2 {
			g.join(t.Context(), t, purchase(nth(i), "key", "mug", 1))
		}
		g.spy.afterTx = func(error) { g.spy.aroundTx = func(order.Tx) order.Tx { panic("boom") } }
		g.serve()
		for i := range g.answers {
			if err := g.answers[i].err; err == nil || order.Code(err) != "" || !strings.Contains(err.Error(), "panic: boom\n") {
				t.Errorf("got %v, want the panic, with its stack", err)
			}
		}
		g.spy.aroundTx, g.spy.afterTx = nil, nil
		g.mustPlace(t, purchase("ann", "key", "mug", 1))
		g.lanes.Close()
		_, _, err := g.Place(t.Context(), purchase("bob", "key", "mug", 1))
		wantErr(t, "closed", err, lock.ErrClosed)
		g.audit(t, "")
	})
}

// "After the decision, the buyer waits for the outcome, for two seconds at most": a caller whose time is over gets an
// answer although the transaction stands still. The same request learns the outcome later.
func TestBatch_standsStill(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db, byLanes)
		b.supply(t, "mug", 2)
		b.supply(t, "hat", 1)
		old := b.place(t, "old", "hat", 1)
		gate := make(chan struct{})
		until := func() context.Context {
			ctx, over := context.WithCancel(t.Context())
			b.spy.beforeCommit = func() { over(); <-gate }
			return ctx
		}
		_, _, err := b.Place(until(), buy("key", "mug", 1))
		wantErr(t, "order", err, order.ErrUnknownOutcome)
		if !db.IsSQLite() { // whose only writer stands still
			ended := b.lanes.End(until(), order.Ending{OrderID: old.ID, As: order.Paid})
			wantErr(t, "payment", ended[0].Err, order.ErrUnknownOutcome)
		}
		close(gate)
		_, _, err = b.Place(t.Context(), buy("key", "mug", 1))
		wantErr(t, "order again", err, nil)
		b.wantLevel(t, "mug", 1, 1)
		_, err = b.Pay(t.Context(), payment(old))
		wantErr(t, "payment again", err, nil)
		b.audit(t, "")
	})
}

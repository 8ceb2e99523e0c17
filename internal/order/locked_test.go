package order_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store/storetest"
)

// While another session keeps a row locked, or the gap for new rows, the others of the same moment are served. What
// waits keeps few connections, and is served when the row is free: "If another transaction has locked a row of a
// request, the request waits in the queue behind: it delays no other request."
func TestLockedRow(t *testing.T) {
	t.Parallel()
	const crowd, waiting = 64, 16
	buy := func(b *bundle, r order.Request) error { _, _, err := b.Place(t.Context(), r); return err }
	pay := func(b *bundle, r order.EndRequest) error { _, err := b.Pay(t.Context(), r); return err }
	take := func(b *bundle, id string, o order.Order) error {
		_, err := b.TakePayment(t.Context(), pays(id, o))
		return err
	}
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		for name, c := range map[string]struct {
			lock  string // statements at the server's default isolation; ORDER is the id of the first order of a mug, by OLD
			waits func(b *bundle, i int, mugs []order.Order) error
		}{
			"buyer": {"SELECT 1 FROM buyers WHERE buyer = 'ann' FOR UPDATE", func(b *bundle, i int, _ []order.Order) error {
				return buy(b, purchase("ann", nth(i), "mug", 1))
			}},
			"new buyer": {"INSERT INTO buyers VALUES ('eve')", func(b *bundle, i int, _ []order.Order) error {
				return buy(b, purchase("eve", nth(i), "mug", 1))
			}},
			"gap of new buyers": {"SELECT 1 FROM buyers WHERE buyer = 'eve' FOR UPDATE", func(b *bundle, i int, _ []order.Order) error {
				return buy(b, purchase("eve-"+nth(i), "key", "mug", 1))
			}},
			"key of a stuck twin": {
				"SELECT 1 FROM buyers WHERE buyer = 'OLD' FOR UPDATE; INSERT INTO idempotency_keys VALUES ('OLD', 'twin', '', '', NOW())",
				func(b *bundle, _ int, mugs []order.Order) error {
					return buy(b, purchase(mugs[0].Buyer, "twin", "mug", 1))
				},
			},
			"key of another program": {"INSERT INTO idempotency_keys VALUES ('OLD', 'twin', '', '', NOW())",
				func(b *bundle, _ int, mugs []order.Order) error { return pay(b, withKey(mugs[0], "twin")) }},
			"gap of keys": {"SELECT 1 FROM idempotency_keys WHERE buyer = 'ann' AND idempotency_key = 'later' FOR UPDATE",
				func(b *bundle, i int, _ []order.Order) error {
					return buy(b, purchase("ann", "later-"+nth(i), "mug", 1))
				}},
			"SKU, of orders": {"SELECT 1 FROM skus WHERE name = 'mug' FOR UPDATE", func(b *bundle, i int, _ []order.Order) error {
				r := purchase(nth(i), "key", "mug", 1)
				r.Lines = append(r.Lines, order.Line{SKU: []string{"mug", "hat"}[i%2], Units: 1})
				return buy(b, r)
			}},
			"SKU, of payments": {"SELECT 1 FROM skus WHERE name = 'mug' FOR UPDATE",
				func(b *bundle, i int, mugs []order.Order) error { return pay(b, payment(mugs[i])) }},
			"end of a ledger, of orders": {"SELECT 1 FROM movements WHERE sku = 'mug' AND id > 'f' FOR UPDATE",
				func(b *bundle, i int, _ []order.Order) error { return buy(b, purchase(nth(i), "key", "mug", 1)) }},
			"end of a ledger, of payments": {"SELECT 1 FROM movements WHERE sku = 'mug' AND id > 'f' FOR UPDATE",
				func(b *bundle, i int, mugs []order.Order) error { return pay(b, payment(mugs[i])) }},
			"units of a buyer, of orders": {"SELECT 1 FROM buyer_units WHERE sku = 'mug' AND buyer = 'OLD' FOR UPDATE",
				func(b *bundle, i int, mugs []order.Order) error {
					return buy(b, purchase(mugs[0].Buyer, nth(i), "mug", 1))
				}},
			"units of a buyer, of a cancellation": {"SELECT 1 FROM buyer_units WHERE sku = 'mug' AND buyer = 'OLD' FOR UPDATE",
				func(b *bundle, _ int, mugs []order.Order) error {
					_, err := b.Cancel(t.Context(), payment(mugs[0]))
					return err
				}},
			"gap of units": {"SELECT 1 FROM buyer_units WHERE sku = 'mug' AND buyer = 'eve' FOR UPDATE",
				func(b *bundle, i int, _ []order.Order) error { return buy(b, purchase("eve-"+nth(i), "key", "mug", 1)) }},
			"payment": {"SELECT 1 FROM payments WHERE id = 'pi-a' FOR UPDATE",
				func(b *bundle, _ int, mugs []order.Order) error { return take(b, "pi-a", mugs[crowd+1]) }},
			"gap of payments": {"SELECT 1 FROM payments WHERE id = 'pi-g' FOR UPDATE",
				func(b *bundle, i int, mugs []order.Order) error { return take(b, "pi-g-"+nth(i), mugs[i]) }},
			"order": {"SELECT 1 FROM orders WHERE id = 'ORDER' FOR UPDATE",
				func(b *bundle, _ int, mugs []order.Order) error { return pay(b, payment(mugs[0])) }},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				db := kind.New(t, patientSession).Migrated(t)
				shop := setup(t, db, byLanes)
				shop.supply(t, "mug", 1_000)
				shop.supply(t, "hat", 1_000)
				shop.limit(t, "mug", 100)
				shop.place(t, "known", "mug", 1)
				shop.mustPlace(t, purchase("fay", "known", "mug", 1)) // gaps end before her
				mugs, hats := make([]order.Order, crowd+3), make([]order.Order, crowd+3)
				atOnce(crowd+3, func(i int) {
					for sku, orders := range map[string][]order.Order{"mug": mugs, "hat": hats} {
						o, _, err := shop.Place(t.Context(), purchase("old-"+nth(i), sku, sku, 1))
						wantErr(t, "old order", err, nil)
						orders[i] = o
					}
				})
				for i, id := range []string{"pi-a", "pi-z"} {
					wantErr(t, "payment", take(shop, id, mugs[crowd+1+i]), nil)
				}
				g := gather(t, db)
				g.all.Go(func() { // the first batch of ends stands still as well
					_, err := g.Cancel(t.Context(), order.EndRequest{OrderID: "none", Buyer: "first"})
					wantErr(t, "no order", err, order.ErrNotFound)
				})
				await(t, "begun", 2, func() int { return int(g.begun.Load()) })
				waits := func(i int) {
					g.all.Go(func() {
						err := c.waits(g.bundle, i, mugs)
						for errors.Is(err, order.ErrBusy) { // on a slow machine
							err = c.waits(g.bundle, i, mugs)
						}
						wantErr(t, "waits", err, nil)
					})
				}

				unlock := g.lockedBy(t, strings.NewReplacer("ORDER", mugs[0].ID, "OLD", mugs[0].Buyer).Replace(c.lock))
				var others sync.WaitGroup
				for i := range waiting {
					waits(i)
				}
				for i := range crowd {
					others.Go(func() { wantErr(t, "another order", buy(g.bundle, purchase("other-"+nth(i), "key", "hat", 1)), nil) })
					others.Go(func() { wantErr(t, "another payment", pay(g.bundle, payment(hats[i])), nil) })
				}
				await(t, "queued", 2*crowd, func() int { return min(2*crowd, g.queued()) })
				close(g.gate)
				others.Wait()
				waits(crowd)
				wantErr(t, "comes after it", buy(g.bundle, purchase("last", "key", "hat", 1)), nil)
				wantErr(t, "is paid after it", pay(g.bundle, payment(hats[crowd])), nil)
				for _, pool := range []*sql.DB{db.DB(), db.Sharing().DB()} {
					if now := pool.Stats(); now.InUse > now.MaxOpenConnections*3/4 {
						t.Errorf("%d of %d connections are in use", now.InUse, now.MaxOpenConnections)
					}
				}
				unlock()
				g.all.Wait()
				g.audit(t, "")
			})
		}
	})
}

// lockedBy runs statements in a transaction of another session, at the server's default isolation, and keeps it open.
func (b *bundle) lockedBy(t *testing.T, statements string) (unlock func()) {
	t.Helper()
	session, err := b.db.DB().BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	wantErr(t, "begin", err, nil)
	for statement := range strings.SplitSeq(statements, "; ") {
		_, err := session.ExecContext(t.Context(), statement)
		wantErr(t, statement, err, nil)
	}
	return func() { wantErr(t, "rollback", session.Rollback(), nil) }
}

// patientSession are the parameters of a database on which a session may stand still in a transaction, and wait for
// locks.
const patientSession = "innodb_lock_wait_timeout=600&wait_timeout=600"

// A crowd of carts keeps coming to a locked gap. Each is answered: it waits "until rowTimeout after it came". It "does
// not keep the rows of its other SKUs locked for one attempt after the other": the others are served, those that come
// at the same moment and those that come later. "The leader of that queue runs aloneAtOnce transactions at a time."
func TestLockedRow_crowd(t *testing.T) {
	t.Parallel()
	const crowd, others, rounds, aloneAtOnce = 60, 10, 3, 8
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		for name, lock := range map[string]string{
			"gap of new buyers": "SELECT 1 FROM buyers WHERE buyer = 'eve' FOR UPDATE",
			"gap of units":      "SELECT 1 FROM buyer_units WHERE sku = 'mug' AND buyer = 'eve' FOR UPDATE",
			"end of a ledger":   "SELECT 1 FROM movements WHERE sku = 'mug' AND id > 'f' FOR UPDATE",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := setup(t, kind.New(t, patientSession).Migrated(t), byLanes)
				for _, sku := range []string{"mug", "hat", "cup"} {
					b.supply(t, sku, 1_000)
				}
				b.limit(t, "mug", 100)
				b.place(t, "known", "mug", 1)
				b.mustPlace(t, purchase("fay", "known", "mug", 1)) // gaps end before her
				var running, most atomic.Int64
				b.spy.beforeTx = func() error { running.Add(1); return nil }
				b.spy.afterTx = func(error) { running.Add(-1) }
				b.spy.aroundTx = func(tx order.Tx) order.Tx {
					for now, before := running.Load(), most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
					}
					return tx
				}
				buyCart := func(ctx context.Context, i int) error {
					r := purchase("eve-"+nth(i), "key", "mug", 1)
					r.Lines = append(r.Lines, order.Line{SKU: "hat", Units: 1})
					_, _, err := b.Place(ctx, r)
					return err
				}

				unlock := b.lockedBy(t, lock)
				var waiting, served sync.WaitGroup
				refused, sold := make(chan struct{}), make(chan struct{})
				refuse := sync.OnceFunc(func() { close(refused) })
				selling, enough := context.WithCancel(t.Context())
				for i := range crowd {
					waiting.Go(func() {
						for range rounds {
							select {
							case <-sold:
								return
							default:
							}
							ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
							wantErr(t, "answer", buyCart(ctx, i), order.ErrLocked)
							cancel()
							refuse()
						}
					})
				}
				for i := range others {
					for _, sku := range []string{"hat", "cup"} {
						served.Go(func() {
							for _, key := range []string{"at once", "later"} {
								_, err := patient(selling, b, purchase("other-"+nth(i)+sku, key, sku, 1))
								wantErr(t, sku+" "+key, err, nil)
								<-refused
							}
						})
					}
				}
				go func() { defer close(sold); served.Wait() }()
				go func() { defer enough(); waiting.Wait() }()
				<-sold
				<-selling.Done()
				if got := most.Load(); got > aloneAtOnce+1 {
					t.Errorf("%d transactions at a time, want %d and a batch", got, aloneAtOnce)
				}
				unlock()
				atOnce(crowd, func(i int) { wantErr(t, "unlocked", buyCart(t.Context(), i), nil) })
				b.audit(t, "")
			})
		}
	})
}

// What waits behind is answered while the row is still locked: it waits "until rowTimeout after it came", or until its
// caller leaves. A strategy of one order tries "again after ErrChanged and, for 5 s, after ErrLocked".
func TestLockedRow_forLong(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		shop := setup(t, kind.New(t, "wait_timeout=60").Migrated(t), byLanes, maxOpen(10))
		shop.supply(t, "mug", 10)
		shop.supply(t, "hat", 10)
		mug, hat := shop.place(t, "mug", "mug", 1), shop.place(t, "hat", "hat", 1)
		undo := errors.New("undo")
		err := shop.db.InTx(t.Context(), func(tx order.Tx) error {
			if _, err := tx.LockOrders(hat.ID); err != nil {
				return err
			}
			if _, err := tx.LockBuyers("eve"); err != nil {
				return err
			}
			if _, err := tx.LockLevels([]string{"mug"}); err != nil {
				return err
			}
			var all sync.WaitGroup
			for _, strategy := range []string{"lanes", "conditional"} {
				all.Go(func() {
					_, _, err := shop.by(strategy).Place(t.Context(), purchase("eve", strategy, "hat", 1))
					wantErr(t, "buyer of "+strategy, err, order.ErrBusy)
				})
			}
			all.Go(func() {
				_, err := shop.Pay(t.Context(), payment(hat))
				wantErr(t, "order", err, order.ErrBusy)
			})
			all.Go(func() {
				_, err := shop.Extend(t.Context(), hat.ID)
				wantErr(t, "order to be extended", err, order.ErrBusy)
			})
			all.Go(func() {
				_, err := shop.Pay(t.Context(), payment(mug))
				wantErr(t, "SKU of a payment", err, order.ErrBusy)
			})
			all.Go(func() {
				_, _, err := shop.Place(t.Context(), purchase("bob", "key", "mug", 1))
				wantErr(t, "SKU", err, order.ErrBusy)
			})
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, _, err := shop.Place(ctx, purchase("eve", "key", "mug", 1))
				wantErr(t, "leaves", err, context.DeadlineExceeded)
			})
			all.Wait()
			return undo
		})
		wantErr(t, "transaction", err, undo)
		shop.audit(t, "")
	})
}

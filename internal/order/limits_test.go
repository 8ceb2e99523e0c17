package order_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

// "No buyer exceeds a limit": of pending orders, Config.MaxOpen. An order that ends makes room. "A replay is not a new
// order."
func TestService_maxOpen(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db, maxOpen(2))
		b.supply(t, "mug", 20)
		var open []order.Order
		for i := range 2 {
			open = append(open, b.place(t, fmt.Sprintf("key-%d", i), "mug", 2))
		}
		b.wantRefused(t, buy("key-2", "mug", 1), order.ErrTooManyOpen, "2 are pending, at most 2 are allowed")
		b.wantEnd(t, open[0], order.Pending, "mug", stock.Level{Supplied: 20, Available: 16, Reserved: 4})
		var full *order.Error
		if _, _, err := b.Place(t.Context(), buy("key-2", "mug", 1)); !errors.As(err, &full) || full.Wait <= 0 || full.Wait > order.DefaultHold {
			t.Errorf("got %+v, want the time until the first expires, at most %v", full, order.DefaultHold)
		}
		if o, replayed, err := b.Place(t.Context(), buy("key-0", "mug", 2)); err != nil || !replayed || o.ID != open[0].ID {
			t.Errorf("replay: got %s, %v, %v, want the first order", o.ID, replayed, err)
		}
		b.mustPlace(t, purchase("bob", "key-2", "mug", 1))

		for i, end := range []func(order.Order) error{
			func(o order.Order) error { _, err := b.Pay(t.Context(), payment(o)); return err },
			func(o order.Order) error { _, err := b.Cancel(t.Context(), payment(o)); return err },
			func(o order.Order) error {
				b.makeDue(t, o)
				b.wantRefused(t, buy("due", "mug", 1), order.ErrTooManyOpen, "2 are pending") // it still holds its units
				_, err := b.ExpireDue(t.Context(), 10)
				return err
			},
		} {
			if err := end(open[0]); err != nil {
				t.Fatal(err)
			}
			open = append(open[1:], b.place(t, fmt.Sprintf("after-%d", i), "mug", 2))
			b.wantRefused(t, buy("too-many", "mug", 1), order.ErrTooManyOpen, "")
		}
		b.audit(t, "mug")
	})
}

// "No buyer exceeds a limit": of each SKU, LimitPerBuyer units in orders that are pending or paid. What is cancelled or
// expired may be bought again.
func TestService_purchaseLimit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		b.supply(t, "mug", 20)
		b.supply(t, "cup", 20)
		b.limit(t, "mug", 3)
		b.wantRefused(t, buy("four", "mug", 4), order.ErrPurchaseLimit, `"mug": more units than a buyer may have: at most 3 for each buyer, 3 of them left to buy`)
		mugs := order.Line{SKU: "mug", Units: 2}
		b.wantRefused(t, cart("two and two", mugs, mugs), order.ErrPurchaseLimit, "3 of them left to buy")

		two := b.place(t, "two", "mug", 2)
		b.wantRefused(t, buy("two more", "mug", 2), order.ErrPurchaseLimit, "1 of them left to buy")
		b.wantRefused(t, cart("mixed", order.Line{SKU: "cup", Units: 5}, mugs), order.ErrPurchaseLimit, `"mug"`)
		if got, want := b.audit(t, "cup").Level, (stock.Level{Supplied: 20, Available: 20}); got != want {
			t.Errorf("cup: got %v, want %v: all or nothing", got, want)
		}
		one := b.place(t, "one", "mug", 1)
		b.wantRefused(t, buy("one more", "mug", 1), order.ErrPurchaseLimit, "0 of them left to buy")
		if _, replayed, err := b.Place(t.Context(), buy("two", "mug", 2)); err != nil || !replayed {
			t.Errorf("replay: got %v, %v", replayed, err)
		}
		b.mustPlace(t, purchase("bob", "three", "mug", 3))

		if _, err := b.Pay(t.Context(), payment(two)); err != nil {
			t.Fatal(err)
		}
		b.wantRefused(t, buy("paid counts", "mug", 1), order.ErrPurchaseLimit, "")
		if _, err := b.Cancel(t.Context(), payment(one)); err != nil {
			t.Fatal(err)
		}
		one = b.place(t, "after a cancellation", "mug", 1)
		b.wantRefused(t, buy("full again", "mug", 1), order.ErrPurchaseLimit, "")
		b.makeDue(t, one)
		b.wantRefused(t, buy("due counts", "mug", 1), order.ErrPurchaseLimit, "")
		if _, err := b.ExpireDue(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		b.place(t, "after an expiry", "mug", 1)

		b.limit(t, "mug", 2) // less than she has
		b.wantRefused(t, buy("lowered", "mug", 1), order.ErrPurchaseLimit, "2 for each buyer, 0 of them left to buy")
		b.limit(t, "mug", 0)
		b.place(t, "no limit", "mug", 10)
		b.limit(t, "mug", 14) // and she has 13
		b.wantRefused(t, buy("limited again", "mug", 2), order.ErrPurchaseLimit, "14 for each buyer, 1 of them left to buy")
		b.audit(t, "")
	})
}

// patient places an order as buyers do: again, while the database is busy.
func patient(ctx context.Context, b *bundle, r order.Request) (order.Order, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		o, _, err := b.Place(ctx, r)
		if !errors.Is(err, order.ErrBusy) || ctx.Err() != nil {
			return o, err
		}
	}
}

// "No buyer exceeds a limit, by any strategy, with any number of instances and of orders at once": neither the limit of
// pending orders, with four SKUs, so that no lease puts the orders in line, nor the limit of units of a SKU, in orders
// of one to three.
func TestService_limitsAtOnce(t *testing.T) {
	t.Parallel()
	const orders = 24
	for _, c := range []struct {
		open, skus int
		perBuyer   int64
		want       error
		bought     int64 // units
	}{
		{open: 5, skus: 4, want: order.ErrTooManyOpen, bought: 5},
		{open: orders, skus: 1, perBuyer: 10, want: order.ErrPurchaseLimit, bought: 10}, // both are counted
	} {
		storetest.Each(t, func(t *testing.T, db *store.Store) {
			shops := threeShops(t, db, maxOpen(c.open))
			for _, how := range offered(shops[0]) {
				shops := allBy(how.Name, shops)
				for i := range c.skus {
					shops[0].supply(t, fmt.Sprint(how.Name, i), 2*orders)
					shops[0].limit(t, fmt.Sprint(how.Name, i), c.perBuyer)
				}
				var bought atomic.Int64
				atOnce(orders, func(i int) {
					r := purchase(how.Name, fmt.Sprint(i), fmt.Sprint(how.Name, i%c.skus), 1)
					if c.perBuyer > 0 {
						r.Lines[0].Units += int64(i % 3)
					}
					_, err := patient(t.Context(), shops[i%len(shops)], r)
					if err == nil {
						bought.Add(r.Lines[0].Units)
					} else if !errors.Is(err, c.want) {
						t.Errorf("%s: got %v, want %v", how.Name, err, c.want)
					}
				})
				if got := bought.Load(); got != c.bought {
					t.Errorf("%s: got %d units, want %d", how.Name, got, c.bought)
				}
				for i := range c.skus {
					if how.Designed {
						shops[0].audit(t, fmt.Sprint(how.Name, i))
					}
				}
			}
		})
	}
}

// Orders that come and go while others are counted, and a limit with them: none waits for another for ever, and never
// is there one too many.
func TestService_maxOpenComingAndGoing(t *testing.T) {
	t.Parallel()
	const buyers, rounds, most = 8, 12, 3
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		shops := threeShops(t, db, maxOpen(most))
		ways := [][]*bundle{allBy("lanes", shops), allBy("redis", shops)}
		shops[0].supply(t, "cup", 1_000)
		shops[0].supply(t, "mug", 1_000)
		shops[0].limit(t, "mug", 1_000)
		atOnce(buyers, func(i int) {
			for round := range rounds {
				if i == 0 {
					if _, err := db.SetLimitPerBuyer(t.Context(), "mug", int64(round%2)*1_000); err != nil && !errors.Is(err, order.ErrBusy) {
						t.Errorf("limit: %v", err)
					}
				}
				b := ways[round%2][i%len(shops)]
				r := buy(fmt.Sprintf("%d-%d", i, round), "cup", 1)
				r.Lines = append(r.Lines, order.Line{SKU: "mug", Units: 1})
				o, err := patient(t.Context(), b, r)
				if errors.Is(err, order.ErrTooManyOpen) {
					continue
				}
				if err != nil {
					t.Errorf("place: %v", err)
					return
				}
				var open int64
				err = db.DB().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders WHERE status = 'pending'").Scan(&open)
				if err != nil || open > most {
					t.Errorf("%d orders are pending, %v, want at most %d", open, err, most)
				}
				end := b.Pay
				if round%3 == 0 {
					end = b.Cancel
				}
				if _, err := end(t.Context(), payment(o)); err != nil && !errors.Is(err, order.ErrBusy) {
					t.Errorf("end: %v", err)
				}
			}
		})
		shops[0].audit(t, "cup")
		shops[0].audit(t, "mug")
	})
}

// "The price and the limit of an order are read from the SKU's row while it is locked, by every strategy that is
// designed to be correct": the operator lowers one of them after a buyer has read it.
func TestService_Place_termsOfTheLockedRow(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db, func(c *config) { c.lockers = locks(t, db) })
		for _, how := range offered(b) {
			if !how.Designed {
				continue
			}
			mug, hat, b := "mug-"+how.Name, "hat-"+how.Name, b.by(how.Name)
			b.supply(t, mug, 20)
			b.supply(t, hat, 20)
			meanwhile := func(change func()) {
				b.spy.beforeTx = func() error { b.spy.beforeTx = nil; change(); return nil }
			}
			for i, lines := range [][]order.Line{{{SKU: mug, Units: 5}}, {{SKU: hat, Units: 1}, {SKU: mug, Units: 5}}} {
				price := int64(1000 - i)
				meanwhile(func() { b.exec(t, "UPDATE skus SET price_minor = ? WHERE name = ?", price, mug) })
				o := b.mustPlace(t, cart(fmt.Sprint(how.Name, i), lines...))
				if got := o.Lines[i].Price.Minor; got != price {
					t.Errorf("%s: %d lines: sold at %d, want %d", how.Name, len(lines), got, price)
				}
				meanwhile(func() { b.limit(t, mug, 1) })
				b.wantRefused(t, cart(fmt.Sprint(how.Name, "limited", i), lines...), order.ErrPurchaseLimit, "1 for each buyer, 0 of them left to buy")
				b.limit(t, mug, 0)
			}
			b.audit(t, mug)
		}
	})
}

// "If the SKU had no limit, the units of each buyer are added up, while the SKU is for sale without a limit": before
// each of its transactions, buyers place and cancel orders. "After order.ErrUnknownOutcome, [...] repeating the call is
// safe. If a call begins while another one counts, one of them returns one of these two errors." The audit never finds
// a difference.
func TestStore_SetLimitPerBuyer_whileSelling(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "wait_timeout=60")
		b := setup(t, database.Migrated(t), byLanes)
		b.supply(t, "mug", 1_000)
		var open []order.Order
		buyOne := func(buyer string) {
			open = append(open, b.mustPlace(t, purchase(buyer, fmt.Sprint(len(open)), "mug", 1)))
		}
		buyOne("bob")
		buyOne("ann")
		var mu sync.Mutex // guards the variables: the link calls the function on a goroutine of its own
		cancelled, step, fails := 0, 0, 0
		var disturb func() testserver.Fate
		limited := database.Through(t, func(statement string) testserver.Fate {
			if statement != "START TRANSACTION" {
				return testserver.Pass
			}
			mu.Lock()
			defer mu.Unlock()
			buyOne("ann")
			buyOne(fmt.Sprint("new-", len(open)))
			cancelled++
			if _, err := b.Cancel(t.Context(), payment(open[cancelled])); err != nil {
				t.Errorf("cancel: %v", err)
			}
			b.audit(t, "mug")
			if step++; disturb != nil && (step == fails || step == fails+1) { // a transaction is tried again after one lost connection
				return disturb()
			}
			return testserver.Pass
		}).Open(t)
		set := func(perBuyer int64, want error, at int, by func() testserver.Fate) {
			mu.Lock()
			step, fails, disturb = 0, at, by
			mu.Unlock()
			if _, err := limited.SetLimitPerBuyer(t.Context(), "mug", perBuyer); !errors.Is(err, want) {
				t.Errorf("limit %d: got %v, want %v", perBuyer, err, want)
			}
			b.audit(t, "mug")
		}
		for at := 2; at <= 5; at++ {
			set(100, order.ErrUnknownOutcome, at, func() testserver.Fate { return testserver.Drop })
			set(100, order.ErrUnknownOutcome, at, func() testserver.Fate { b.limit(t, "mug", 50); return testserver.Pass })
			b.limit(t, "mug", 0)
		}
		set(1, nil, 0, nil)
		mu.Lock()
		if step != 5 {
			t.Errorf("got %d transactions, want 5", step)
		}
		mu.Unlock()
		b.wantRefused(t, purchase("bob", "more", "mug", 1), order.ErrPurchaseLimit, "0 of them left")
		b.mustPlace(t, purchase("zoe", "first", "mug", 1))
		b.audit(t, "mug")
	})
}

// "One recount at a time runs." While it is held up, because another session has locked a row, further calls wait for
// it without a connection, and each SKU is sold, "while the SKU is for sale without a limit". "If a call begins while
// another one counts, one of them returns" an error: at once for the SKU of the recount in progress.
func TestStore_SetLimitPerBuyer_atOnce(t *testing.T) {
	t.Parallel()
	const skus = 40 // more than the pool has connections
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, patientSession)
		database.Migrated(t)
		var begun, counted atomic.Int64
		var mu sync.Mutex // guards inProgress: the link calls the function on goroutines of its own
		inProgress := ""
		b := setup(t, database.Through(t, func(statement string) testserver.Fate {
			if strings.HasPrefix(statement, "REPLACE INTO buyer_units") {
				begun.Add(1)
			}
			if of, counts := strings.CutPrefix(statement, "DELETE FROM buyer_units WHERE sku = "); counts {
				mu.Lock()
				defer mu.Unlock()
				of, first := strings.CutSuffix(of, " AND buyer > ''")
				switch {
				case !first: // the last statement deletes the row without a buyer
					inProgress = ""
				case inProgress != "" && inProgress != of:
					t.Errorf("recount of %s during the recount of %s", of, inProgress)
				default:
					inProgress = of
					counted.Add(1)
				}
			}
			return testserver.Pass
		}).Open(t), byLanes)
		for i := range skus {
			b.supply(t, nth(i), 10)
		}
		b.supply(t, "held", 10)
		b.limit(t, "held", 5)
		b.place(t, "counted", "held", 1)
		set := func(sku string, perBuyer int64) error {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			after, err := b.db.SetLimitPerBuyer(ctx, sku, perBuyer)
			if err == nil && after.LimitPerBuyer != perBuyer {
				t.Errorf("%s: got limit %d, want %d", sku, after.LimitPerBuyer, perBuyer)
			}
			return err
		}

		unlock := b.lockedBy(t, "SELECT 1 FROM buyer_units WHERE sku = 'held' AND buyer = 'ann' FOR UPDATE")
		begun.Store(0)
		counted.Store(0)
		var all sync.WaitGroup
		all.Go(func() { wantErr(t, "held up", set("held", 0), nil) })
		await(t, "held up", 1, func() int { return int(counted.Load()) })
		for i := range skus {
			all.Go(func() { wantErr(t, nth(i), set(nth(i), 5), nil) })
		}
		twins := make(chan error, 2)
		b.supply(t, "twin", 10)
		for range cap(twins) {
			all.Go(func() { twins <- set("twin", 5) })
		}
		await(t, "begun", 1+skus+cap(twins), func() int { return min(int(begun.Load()), 1+skus+cap(twins)) })
		await(t, "connections, of the locked row and of its recount", 2, func() int { return b.db.DB().Stats().InUse })
		wantErr(t, "held up, again", set("held", 3), order.ErrBusy)
		for _, sku := range []string{"held", "twin", nth(0), nth(skus - 1)} {
			b.place(t, "meanwhile-"+sku, sku, 6)
		}
		unlock()
		all.Wait()
		one, other := <-twins, <-twins
		failed := cmp.Or(one, other)
		if one != nil && other != nil || !errors.Is(failed, order.ErrBusy) && !errors.Is(failed, order.ErrUnknownOutcome) {
			t.Errorf("overlapping calls: got %v and %v, want one ErrBusy or ErrUnknownOutcome", one, other)
		}
		b.wantRefused(t, buy("more", nth(0), 1), order.ErrPurchaseLimit, "0 of them left")
		b.audit(t, "")
	})
}

// "The limit costs only an order of a limited SKU: two statements, for any number of earlier orders." The rows that are
// read do not become more.
func TestService_purchaseLimit_longHistory(t *testing.T) {
	t.Parallel()
	const history = 1_000
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		sent := make(chan string, 1_000) // statements of one order at a time
		database := kind.New(t, "")
		db := database.Migrated(t)
		b := setup(t, database.Through(t, func(s string) testserver.Fate { sent <- s; return testserver.Pass }).Open(t), maxOpen(10))
		b.supply(t, "bulk", history)
		b.supply(t, "drop", history)
		var orders, lines []string
		for i := range history {
			bulk, drop := order.NewID(), order.NewID()
			for id, buyer := range map[string]string{bulk: "ann", drop: nth(i)} {
				orders = append(orders, fmt.Sprintf("('%s', '%s', 'key-%d', 'paid', 1250, 'EUR', '2026-01-01', '2026-01-01')", id, buyer, i))
			}
			lines = append(lines, fmt.Sprintf("('%s', 'bulk', 1, 1, 1250, 'EUR'), ('%s', 'drop', 1, 1, 1250, 'EUR')", bulk, drop))
		}
		b.exec(t, "INSERT INTO orders (id, buyer, idempotency_key, status, total_minor, currency, created_at, expires_at) VALUES "+strings.Join(orders, ", "))
		b.exec(t, "INSERT INTO order_lines (order_id, sku, line_no, units, price_minor, currency) VALUES "+strings.Join(lines, ", "))
		b.limit(t, "drop", 2)
		b.exec(t, "ANALYZE TABLE orders, order_lines, buyer_units")
		for _, name := range []string{"batch", "redis"} {
			b := b.by(name)
			for sku, want := range map[string]int{"bulk": 0, "drop": 2} {
				for len(sent) > 0 {
					<-sent
				}
				b.place(t, name+sku, sku, 1)
				counts, read := 0, 0
				var statements []string
				for len(sent) > 0 {
					statement := <-sent
					statements = append(statements, statement)
					if strings.Contains(statement, "buyer_units") {
						counts++
					}
					if strings.HasPrefix(statement, "SELECT") && !strings.Contains(statement, "FROM skus") {
						read += rowsRead(t, db, statement)
					}
				}
				if counts != want || read > 10 {
					t.Errorf("%s of %s: %d statements for the limit, and %d rows are read, want %d and a few:\n%s",
						name, sku, counts, read, want, strings.Join(statements, "\n"))
				}
			}
		}
	})
}

// rowsRead returns how many rows the database expects that a statement reads.
func rowsRead(t *testing.T, db *store.Store, statement string) (all int) {
	t.Helper()
	plan, err := db.DB().QueryContext(t.Context(), "EXPLAIN FORMAT=TRADITIONAL "+statement)
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	names, err := plan.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for plan.Next() {
		var rows sql.NullInt64
		columns := make([]any, len(names))
		for i, name := range names {
			columns[i] = new(any)
			if name == "rows" {
				columns[i] = &rows
			}
		}
		if err := plan.Scan(columns...); err != nil {
			t.Fatal(err)
		}
		all += int(rows.Int64)
	}
	if err := plan.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

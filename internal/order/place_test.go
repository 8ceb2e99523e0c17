package order_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// "A strategy that is designed to be correct never oversells", nor undersells: 120 buyers on three instances
// want 40 mugs, alone or with a hat, in any order of the lines.
func TestService_Place_neverOversold(t *testing.T) {
	t.Parallel()
	const buyers, mugs = 120, 40
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		shops := threeShops(t, db)
		for _, s := range offered(shops[0]) {
			if !s.Designed {
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				shops, mug, hat := allBy(s.Name, shops), "mug-"+s.Name, "hat-"+s.Name
				shops[0].supply(t, mug, mugs)
				shops[0].supply(t, hat, buyers)
				atOnce(buyers, func(i int) {
					r := purchase(nth(i), s.Name, mug, 1)
					if i%3 > 0 {
						r.Lines = slices.Insert(r.Lines, i%3-1, order.Line{SKU: hat, Units: 1})
					}
					_, _, err := shops[i%3].Place(t.Context(), r)
					if err != nil && !errors.Is(err, order.ErrSoldOut) {
						t.Errorf("Place: %v", err)
					}
				})
				a, hats := shops[0].audit(t, mug), shops[0].audit(t, hat)
				if want := (stock.Level{Supplied: mugs, Reserved: mugs}); a.Level != want || a.Orders != mugs || hats.Orders > mugs {
					t.Errorf("%d orders, %d with a hat, level %+v; want %d and %+v", a.Orders, hats.Orders, a.Level, mugs, want)
				}
			})
		}
	})
}

// "Too little of the lease left to commit", and "A refused order changes no row."
func TestService_Place_tooLate(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		late := b.another(t, func(c *config) { c.margin = time.Minute }) // longer than any lease
		b.supply(t, "mug", 1)
		if _, _, err := late.Place(t.Context(), buy("key", "mug", 1)); !errors.Is(err, order.ErrTooLate) {
			t.Errorf("Place: %v, want ErrTooLate", err)
		}
		if a := b.audit(t, "mug"); a.Orders != 0 || a.Available != 1 {
			t.Errorf("account %+v after a refusal", a)
		}
		if _, replayed, err := b.Place(t.Context(), buy("key", "mug", 1)); err != nil || replayed {
			t.Errorf("the same key in time: replayed %v, %v", replayed, err)
		}
	})
}

// Where the lock's store cannot give a higher fence, nothing was sold, and asking again is safe.
func TestService_Place_overtakesInVain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		tap := locktest.NewTap(lock.NewMemory())
		b := setup(t, db, func(c *config) { c.backend = tap })
		b.supply(t, "mug", 1)
		b.afterRead(func() {
			b.raiseFence(t, "mug", time.Now().Add(time.Hour).UnixMicro())
			b.afterRead(tap.Cut)
		})
		_, _, err := b.Place(t.Context(), buy("key", "mug", 1))
		if !errors.Is(err, lock.ErrNoAnswer) || !errors.Is(err, locktest.ErrCut) {
			t.Errorf("Place: %v, want ErrNoAnswer and why", err)
		}
		if a := b.audit(t, "mug"); a.Orders != 0 || a.Available != 1 {
			t.Errorf("account %+v after a refusal", a)
		}
	})
}

// A holder that was cut off from the lock's store while it held the lease sells nothing after its time; the next
// holder does.
func TestService_Place_leaseLost(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		backend := lock.NewMemory()
		tap := locktest.NewTap(backend)
		cutOff := setup(t, db, func(c *config) { c.backend, c.ttl = tap, time.Second }) // the other shop waits for the end of this TTL
		healthy := setup(t, db, func(c *config) { c.backend = backend })
		healthy.supply(t, "mug", 5)
		cutOff.afterRead(func() {
			tap.Cut()
			if _, _, err := healthy.Place(t.Context(), buy("healthy", "mug", 1)); err != nil {
				t.Errorf("the other instance: %v", err)
			}
		})
		_, _, err := cutOff.Place(t.Context(), buy("cut off", "mug", 1))
		if !errors.Is(err, lock.ErrLost) {
			t.Errorf("Place: %v, want ErrLost", err)
		}
		if a := healthy.audit(t, "mug"); a.Orders != 1 {
			t.Errorf("%d orders, want the healthy one's", a.Orders)
		}
	})
}

// "A buyer's idempotency key makes at most one order": 20 requests at once, by every strategy, also the wrong ones, on
// three instances.
func TestService_Place_twins(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		shops := threeShops(t, db)
		for _, s := range offered(shops[0]) {
			t.Run(s.Name, func(t *testing.T) {
				shops, name := allBy(s.Name, shops), "mug-"+s.Name
				shops[0].supply(t, name, 1)
				ids := make([]string, 20)
				atOnce(len(ids), func(i int) {
					o, _, err := shops[i%3].Place(t.Context(), buy("key-"+s.Name, name, 1))
					if err != nil {
						t.Errorf("Place: %v", err)
					}
					ids[i] = o.ID
				})
				for _, id := range ids {
					if id != ids[0] {
						t.Fatalf("two orders for one key: %s and %s", ids[0], id)
					}
				}
				if n := shops[0].audit(t, name).Orders; n != 1 {
					t.Errorf("%d orders, want 1", n)
				}
			})
		}
	})
}

// While a request waits, its twin may take the last units: then it is not sold out but replayed.
func TestService_Place_twinTookTheLast(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db).by("conditional") // no lock, so that the twin can come in between
		b.supply(t, "mug", 1)
		r := buy("key", "mug", 1)
		var twin order.Order
		b.afterRead(func() {
			var err error
			if twin, _, err = b.Place(t.Context(), r); err != nil {
				t.Errorf("twin: %v", err)
			}
		})
		o, replayed, err := b.Place(t.Context(), r)
		if err != nil || !replayed || o.ID != twin.ID {
			t.Errorf("got order %q, replayed %v, %v; want the twin's %q", o.ID, replayed, err, twin.ID)
		}
		b.audit(t, "mug")
	})
}

// "Lines of the same SKU count as one line", others stay in the buyer's order, and the total is the shop's own. "If the
// request is repeated, the answer is the order as it was first answered." "Another request with the same key is
// refused", whatever the lines.
func TestService_Place_lines(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := threeShops(t, db)[0]
		mugs, hats := stock.Money{Minor: 1250, Currency: "EUR"}, stock.Money{Minor: 99, Currency: "EUR"}
		for _, s := range offered(b) {
			mug, hat := "mug-"+s.Name, "hat-"+s.Name
			b.supplyAt(t, mugs, mug, 10)
			b.supplyAt(t, hats, hat, 20)
			b := b.by(s.Name)
			r := cart(s.Name, []order.Line{{SKU: mug, Units: 1}, {SKU: hat, Units: 4}, {SKU: mug, Units: 2}}...)
			o := b.mustPlace(t, r)
			want := []order.Line{{SKU: mug, Units: 3, Price: mugs}, {SKU: hat, Units: 4, Price: hats}}
			if diff := cmp.Diff(want, o.Lines); diff != "" {
				t.Errorf("%s: lines (-want +got):\n%s", s.Name, diff)
			}
			if want := (stock.Money{Minor: 3*1250 + 4*99, Currency: "EUR"}); o.Total != want {
				t.Errorf("%s: total %v, want %v", s.Name, o.Total, want)
			}
			for name, lines := range map[string][]order.Line{
				"same":   r.Lines,
				"merged": {{SKU: mug, Units: 3}, {SKU: hat, Units: 4}},
				"split":  {{SKU: mug, Units: 3}, {SKU: hat, Units: 1}, {SKU: hat, Units: 3}},
			} {
				again, replayed, err := b.Place(t.Context(), cart(s.Name, lines...))
				if err != nil || !replayed {
					t.Errorf("%s, %s: replayed %v, %v", s.Name, name, replayed, err)
				}
				if diff := cmp.Diff(o, again); diff != "" {
					t.Errorf("%s, %s: another order (-first +again):\n%s", s.Name, name, diff)
				}
			}
			for name, lines := range map[string][]order.Line{
				"one line less": {{SKU: mug, Units: 3}},
				"other units":   {{SKU: mug, Units: 3}, {SKU: hat, Units: 3}},
				"another order": {{SKU: hat, Units: 4}, {SKU: mug, Units: 3}},
			} {
				_, _, err := b.Place(t.Context(), cart(s.Name, lines...))
				wantErr(t, s.Name+", "+name, err, order.ErrKeyReused)
			}
			b.mustPlace(t, purchase("bob", s.Name, hat, 1)) // another buyer's key
			b.wantLevel(t, mug, 7, 3)
			b.wantLevel(t, hat, 15, 5)
		}
	})
}

// "A refused order changes no row", whichever of its lines is refused, and by every strategy, also the wrong ones. The
// error names the SKU. An order of an unknown SKU asks for no lock.
func TestService_Place_allOrNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := threeShops(t, db)[0]
		dollar := stock.Money{Minor: 1, Currency: "USD"}
		lease, err := b.shared.Acquire(t.Context(), "sku:cup")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = lease.Release() }()
		for _, s := range offered(b) {
			first, last, foreign := "a-"+s.Name, "z-"+s.Name, "usd-"+s.Name
			b.supply(t, first, 5)
			b.supply(t, last, 5)
			b.supplyAt(t, dollar, foreign, 5)
			for name, c := range map[string]struct {
				lines []order.Line
				want  error
				names string
			}{
				"first sold out": {[]order.Line{{SKU: first, Units: 6}, {SKU: last, Units: 1}}, order.ErrSoldOut, first},
				"last sold out":  {[]order.Line{{SKU: first, Units: 1}, {SKU: last, Units: 6}}, order.ErrSoldOut, last},
				"sold out, sum":  {[]order.Line{{SKU: last, Units: 3}, {SKU: first, Units: 1}, {SKU: last, Units: 3}}, order.ErrSoldOut, last},
				"unknown":        {[]order.Line{{SKU: last, Units: 1}, {SKU: "cup", Units: 1}}, order.ErrUnknownSKU, "cup"},
				"impossible":     {[]order.Line{{SKU: last, Units: 1}, {SKU: "c?p", Units: 1}}, order.ErrUnknownSKU, "c?p"},
				"forbidden":      {slices.Repeat([]order.Line{{SKU: last, Units: order.MaxUnits}}, 2), order.ErrInvalid, last},
				"two currencies": {[]order.Line{{SKU: last, Units: 1}, {SKU: foreign, Units: 1}}, order.ErrInvalid, foreign},
			} {
				_, _, err := b.by(s.Name).Place(t.Context(), cart("key-"+s.Name, c.lines...))
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), `"`+c.names+`"`) {
					t.Errorf("%s, %s: %v, want %v that names %s", s.Name, name, err, c.want, c.names)
				}
			}
			for _, sku := range []string{first, last, foreign} {
				b.wantLevel(t, sku, 5, 0)
			}
			if _, replayed, err := b.by(s.Name).Place(t.Context(), buy("key-"+s.Name, first, 1)); err != nil || replayed {
				t.Errorf("%s: the key of a refused order: replayed %v, %v", s.Name, replayed, err)
			}
		}
	})
}

// An order is placed whole or not at all. Another order takes the units of the last line between the read and the
// transaction, so the transaction takes the units of the first line before it is refused.
func TestService_Place_lastLineGone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := threeShops(t, db)[0]
		for _, s := range offered(b) {
			if !s.Designed {
				continue
			}
			first, last := "a-"+s.Name, "z-"+s.Name
			b.supply(t, first, 5)
			b.supply(t, last, 1)
			b.spy.beforeTx = func() error {
				b.spy.beforeTx = nil
				other := b.by("conditional") // no lock, so that it can come in between
				if _, _, err := other.Place(t.Context(), buy("other-"+s.Name, last, 1)); err != nil {
					t.Errorf("other: %v", err)
				}
				return nil
			}
			r := cart(s.Name, order.Line{SKU: first, Units: 2}, order.Line{SKU: last, Units: 1})
			if _, _, err := b.by(s.Name).Place(t.Context(), r); !errors.Is(err, order.ErrSoldOut) || !strings.Contains(err.Error(), last) {
				t.Errorf("%s: %v, want ErrSoldOut that names %s", s.Name, err, last)
			}
			b.wantLevel(t, first, 5, 0)
			b.wantLevel(t, last, 0, 1)
		}
	})
}

// A database that has seen a higher fence than the lock's store remembers costs a retry, not the order, on whichever
// line, and the other's fence stays its lease's.
func TestService_Place_overtakesFence(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		ahead := time.Now().Add(time.Hour).UnixMicro()
		for i, raised := range [][]string{{"a"}, {"b"}, {"a", "b"}} {
			b := setup(t, db) // a store that has raised no fence yet
			skus := []string{fmt.Sprint("a", i), fmt.Sprint("b", i)}
			for _, sku := range skus {
				b.supply(t, sku, 5)
			}
			for _, letter := range raised {
				b.raiseFence(t, fmt.Sprint(letter, i), ahead)
			}
			r := cart(fmt.Sprint(i), order.Line{SKU: skus[0], Units: 2}, order.Line{SKU: skus[1], Units: 3})
			if _, _, err := b.Place(t.Context(), r); err != nil {
				t.Fatalf("%v raised: %v", raised, err)
			}
			for _, letter := range []string{"a", "b"} {
				sku, err := b.db.SKU(t.Context(), fmt.Sprint(letter, i))
				if err != nil || sku.Fence == 0 || (sku.Fence > ahead) != slices.Contains(raised, letter) {
					t.Errorf("%v raised: fence of %s %d, %v", raised, letter, sku.Fence, err)
				}
			}
			b.wantLevel(t, skus[0], 3, 2)
			b.wantLevel(t, skus[1], 2, 3)
		}
	})
}

// "The times of an order come from the database's clock when the stock was read", so that a step of that clock is
// followed by the next order.
func TestService_Place_clockSteps(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		b := setup(t, kind.New(t, "").Migrated(t))
		b.db.DB().SetMaxOpenConns(1) // the clock is set for one connection
		b.supply(t, "mug", 10)
		for i, unix := range []int64{2_000_000_000, 2_000_003_600, 1_900_000_000} {
			b.exec(t, "SET timestamp = ?", unix)
			o := b.place(t, fmt.Sprint(i), "mug", 1)
			if created := time.Unix(unix, 0); !o.CreatedAt.Equal(created) || !o.ExpiresAt.Equal(created.Add(order.DefaultHold)) {
				t.Errorf("created at %v, expires at %v, want %v and %v later", o.CreatedAt, o.ExpiresAt, created, order.DefaultHold)
			}
			if _, err := b.Pay(t.Context(), payment(o)); err != nil {
				t.Errorf("pay in time: %v", err)
			}
		}
	})
}

// "A free order, whose total is 0, begins as Paid": by every strategy, in the transaction that places it, with its
// movements and a payment. A limit holds for it. A cart that costs something is an order like any other.
func TestService_Place_free(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db, func(c *config) { c.lockers, c.counts, c.maxOpen = locks(t, db), miniRedis(t), 1 })
		for _, s := range offered(b) {
			t.Run(s.Name, func(t *testing.T) {
				b, free, pin, mug := b.by(s.Name), stock.Money{Currency: "EUR"}, "pin-"+s.Name, "mug-"+s.Name
				b.supplyAt(t, free, pin, 10)
				b.supply(t, mug, 10)
				b.limit(t, pin, 3)
				request := cart("free "+s.Name, order.Line{SKU: pin, Units: 2})
				o := b.mustPlace(t, request)
				if o.Status != order.Paid || o.Total != free {
					t.Errorf("got %s for %v, want a paid order", o.Status, o.Total)
				}
				replay, replayed, err := b.Place(t.Context(), request)
				if diff := cmp.Diff(o, replay); err != nil || !replayed || diff != "" {
					t.Errorf("replayed %v, %v (-placed +replayed):\n%s", replayed, err, diff)
				}
				_, err = b.Cancel(t.Context(), payment(o))
				wantErr(t, "cancel", err, order.ErrState)
				_, err = b.TakePayment(t.Context(), pays("pi-"+o.ID, o))
				wantErr(t, "payment of 0, which could not be refunded", err, order.ErrPayment)
				b.wantEnd(t, o, order.Paid, pin, stock.Level{Supplied: 10, Available: 8, Sold: 2})
				b.wantRefused(t, buy("over "+s.Name, pin, 2), order.ErrPurchaseLimit, "1 of them left to buy")

				mixed := b.mustPlace(t, cart("mixed "+s.Name, order.Line{SKU: pin, Units: 1}, order.Line{SKU: mug, Units: 1}))
				if mixed.Status != order.Pending {
					t.Errorf("got %s, want a pending order", mixed.Status)
				}
				_, err = b.TakePayment(t.Context(), pays("pi-"+mixed.ID, mixed))
				wantErr(t, "payment", err, nil)
				b.audit(t, "")
			})
		}
		// It writes orders without taking units.
		b.supplyAt(t, stock.Money{Currency: "EUR"}, "pin", 10)
		_, _, err := b.by("pre-deduct-only").Place(t.Context(), buy("not taken", "pin", 1))
		wantErr(t, "pre-deduct-only", err, order.ErrNotReserved)
		b.audit(t, "")
	})
}

package store_test

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

// Of two buyers who read the same number, overwrite sells to both: "the lost update". All others refuse the second.
func TestTx_Take_twoWhoReadTheSame(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		for mode, want := range map[stock.TakeMode]error{
			stock.Overwrite: nil, stock.Conditional: order.ErrSoldOut, stock.Fenced: order.ErrSoldOut, stock.Optimistic: order.ErrChanged,
		} {
			name := string(mode)
			s := newShop(t, st, 10, name)
			seen := s.sku(t, name).Level
			if err := s.take(t, mode, stock.Take{SKU: name, Units: 10, Seen: seen, Fence: 1}); err != nil {
				t.Fatalf("%s: first buyer: %v", mode, err)
			}
			if err := s.take(t, mode, stock.Take{SKU: name, Units: 10, Seen: seen, Fence: 2}); !errors.Is(err, want) {
				t.Errorf("%s: second buyer: got %v, want %v", mode, err, want)
			}
			s.wantLevel(t, name, level(0, 10)) // also where 20 units were sold
		}
	})
}

// Refusals move nothing; a stale fence comes first, other terms come before sold out.
func TestTx_Take_refusals(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 10, "mug")
		testserver.Must(t, s.take(t, stock.Fenced, stock.Take{SKU: "mug", Units: 1, Fence: 5}))
		before := s.sku(t, "mug")
		seen := before.Level
		price, currency, limit, same := before.Terms(), before.Terms(), before.Terms(), before.Terms()
		price.Price.Minor++
		currency.Price.Currency = "CHF"
		limit.LimitPerBuyer = 1
		for _, c := range []struct {
			mode stock.TakeMode
			take stock.Take
			want error
		}{
			{stock.Overwrite, stock.Take{SKU: "mug", Units: 10, Seen: seen}, order.ErrSoldOut},
			{stock.Overwrite, stock.Take{SKU: "hat", Units: 1, Seen: seen}, order.ErrUnknownSKU},
			{stock.Conditional, stock.Take{SKU: "mug", Units: 10}, order.ErrSoldOut},
			{stock.Conditional, stock.Take{SKU: "hat", Units: 1}, order.ErrUnknownSKU},
			{stock.Conditional, stock.Take{SKU: "mug", Units: 0}, stock.ErrInvalid},
			{stock.Conditional, stock.Take{SKU: "mug", Units: -1}, stock.ErrInvalid},
			{stock.Optimistic, stock.Take{SKU: "mug", Units: 10, Seen: seen}, order.ErrSoldOut},
			{stock.Optimistic, stock.Take{SKU: "hat", Units: 1, Seen: seen}, order.ErrChanged},
			{stock.Fenced, stock.Take{SKU: "hat", Units: 1, Fence: 9}, order.ErrUnknownSKU},
			{stock.Fenced, stock.Take{SKU: "mug", Units: 10, Fence: 6}, order.ErrSoldOut},
			{stock.Fenced, stock.Take{SKU: "mug", Units: 1}, order.ErrStaleFence},
			{stock.Fenced, stock.Take{SKU: "mug", Units: 1, Fence: 4}, order.ErrStaleFence},
			{stock.Fenced, stock.Take{SKU: "mug", Units: 1, Fence: 5}, order.ErrStaleFence},
			{stock.Fenced, stock.Take{SKU: "mug", Units: 10, Fence: 5}, order.ErrStaleFence},
			{stock.Fenced, stock.Take{SKU: "mug", Units: 1, Fence: 5, Terms: &price}, order.ErrStaleFence},
			{stock.Fenced, stock.Take{SKU: "mug", Units: 1, Fence: 6, Terms: &price}, order.ErrChanged},
			{stock.Fenced, stock.Take{SKU: "mug", Units: 1, Fence: 6, Terms: &currency}, order.ErrChanged},
			{stock.Fenced, stock.Take{SKU: "mug", Units: 1, Fence: 6, Terms: &limit}, order.ErrChanged},
			{stock.Fenced, stock.Take{SKU: "mug", Units: 10, Fence: 6, Terms: &price}, order.ErrChanged},
			{stock.Fenced, stock.Take{SKU: "mug", Units: 10, Fence: 6, Terms: &same}, order.ErrSoldOut},
			{"somehow", stock.Take{SKU: "mug", Units: 1}, stock.ErrInvalid},
		} {
			if err := s.take(t, c.mode, c.take); !errors.Is(err, c.want) {
				t.Errorf("%s %+v: got %v, want %v", c.mode, c.take, err, c.want)
			}
		}
		if after := s.sku(t, "mug"); after != before {
			t.Errorf("row: got %+v, want %+v", after, before)
		}
		if err := s.take(t, stock.Fenced, stock.Take{SKU: "mug", Units: 9, Fence: 6, Terms: &same}); err != nil {
			t.Errorf("the same terms: %v", err)
		}
	})
}

// "because another transaction may be changing the row, and a plain SELECT would not wait for it": the reason for a
// refusal must come from the row as it is now.
func TestTx_Take_refusalSeesThePresent(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		s := newShop(t, kind.New(t, "").Migrated(t), 1, "mug")
		err := s.InTx(t.Context(), func(tx order.Tx) error {
			if _, err := tx.Open("ann"); err != nil { // a plain SELECT
				return err
			}
			if err := s.take(t, stock.Fenced, stock.Take{SKU: "mug", Units: 1, Fence: 7}); err != nil { // another buyer
				return err
			}
			return tx.Take(stock.Fenced, stock.Take{SKU: "mug", Units: 1, Fence: 7})
		})
		if !errors.Is(err, order.ErrStaleFence) {
			t.Errorf("got %v, want ErrStaleFence", err)
		}
		s.wantLevel(t, "mug", level(0, 1))
	})
}

// "A comparison of only the available units would miss a change from 5 to 4 and back to 5": between the read and the
// write, one unit was sold and one unit was delivered.
func TestTx_Take_optimisticSeesAvailableComeBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 5, "mug")
		seen := s.sku(t, "mug").Level
		testserver.Must(t, s.take(t, stock.Conditional, one("mug")))
		if _, _, err := s.Supply(t.Context(), stock.Delivery{SKU: "mug", Key: "k", Units: 1, At: placedAt}); err != nil {
			t.Fatal(err)
		}
		if err := s.take(t, stock.Optimistic, stock.Take{SKU: "mug", Units: 1, Seen: seen}); !errors.Is(err, order.ErrChanged) {
			t.Errorf("got %v, want ErrChanged", err)
		}
		s.wantLevel(t, "mug", level(5, 1))
	})
}

// "LockLevels is like Levels, and keeps the rows locked until this transaction ends": a second buyer waits, and then
// sees what is left.
func TestTx_LockLevels(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 1, "hat", "mug")
		buy := func(locked func()) error {
			return s.InTx(t.Context(), func(tx order.Tx) error {
				levels, err := tx.LockLevels([]string{"mug", "hat"})
				if err != nil {
					return err
				}
				locked()
				return tx.Take(stock.Overwrite, stock.Take{SKU: "mug", Units: 1, Seen: levels.SKUs["mug"].Level})
			})
		}
		begun, second := make(chan struct{}), make(chan error, 1)
		first := buy(sync.OnceFunc(func() {
			go func() {
				close(begun)
				second <- buy(func() {})
			}()
			<-begun
		}))
		if first != nil {
			t.Errorf("first buyer: %v", first)
		}
		if err := <-second; !errors.Is(err, order.ErrSoldOut) {
			t.Errorf("second buyer: got %v, want ErrSoldOut", err)
		}
		s.wantLevel(t, "mug", level(0, 1))
		err := s.InTx(t.Context(), func(tx order.Tx) error { _, err := tx.LockLevels([]string{"mug", "cap"}); return err })
		if !errors.Is(err, order.ErrUnknownSKU) {
			t.Errorf("got %v, want ErrUnknownSKU", err)
		}
	})
}

// "Move changes the levels of SKUs by one statement, all or none, and records the movements. It writes the
// highest fence of a SKU's movements to the row, unless that fence is 0. ErrChanged: nothing was moved, because units
// were missing or the fence of a row was not lower."
func TestTx_Move(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 10, "cap", "hat", "mug")
		m := func(sku string, kind stock.Kind, units, fence int64) stock.Movement {
			return stock.Movement{ID: order.NewID(), SKU: sku, Kind: kind, OrderID: order.NewID(), Level: kind.Change(units),
				Fence: fence, At: placedAt}
		}
		for _, c := range []struct {
			want  error
			moves []stock.Movement
		}{
			{nil, []stock.Movement{m("cap", stock.Reserve, 1, 7), m("hat", stock.Reserve, 2, 0), m("mug", stock.Reserve, 3, 9),
				m("cap", stock.Reserve, 2, 7)}},
			{order.ErrChanged, []stock.Movement{m("cap", stock.Reserve, 1, 7), m("hat", stock.Reserve, 1, 0)}},
			{order.ErrChanged, []stock.Movement{m("cap", stock.Reserve, 1, 6), m("mug", stock.Reserve, 1, 10)}},
			{order.ErrChanged, []stock.Movement{m("cap", stock.Reserve, 1, 8), m("hat", stock.Reserve, 9, 0)}},
			{order.ErrChanged, []stock.Movement{m("hat", stock.Reserve, 1, 0), m("pin", stock.Reserve, 1, 0)}},
			{nil, []stock.Movement{m("cap", stock.Sell, 1, 0), m("cap", stock.Release, 1, 0), m("mug", stock.Sell, 2, 0),
				m("hat", stock.Supply, 5, 0)}},
			{order.ErrChanged, []stock.Movement{m("cap", stock.Release, 1, 0), m("mug", stock.Sell, 1, 0), m("mug", stock.Release, 1, 0)}},
			{nil, nil},
		} {
			err := s.InTx(t.Context(), func(tx order.Tx) error { return tx.Move(c.moves...) })
			if !errors.Is(err, c.want) {
				t.Errorf("%v: got %v, want %v", c.moves, err, c.want)
			}
		}
		for name, want := range map[string]stock.SKU{
			"cap": {Level: stock.Level{Supplied: 10, Available: 8, Reserved: 1, Sold: 1}, Fence: 7},
			"hat": {Level: stock.Level{Supplied: 15, Available: 13, Reserved: 2}},
			"mug": {Level: stock.Level{Supplied: 10, Available: 7, Reserved: 1, Sold: 2}, Fence: 9},
		} {
			if got := s.sku(t, name); got.Level != want.Level || got.Fence != want.Fence {
				t.Errorf("%s: %+v, want %v and fence %d", name, got, want.Level, want.Fence)
			}
		}
		s.wantRows(t, rows{Movements: 3 + 8})
	})
}

// "The last line of defence": no bug can write a count below zero.
func TestSchema_countsAreNeverNegative(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 1, "mug")
		for _, column := range []string{"supplied", "available", "reserved", "sold", "price_minor", "limit_per_buyer"} {
			if _, err := s.DB().ExecContext(t.Context(), "UPDATE skus SET "+column+" = -1"); err == nil {
				t.Errorf("%s = -1 was written", column)
			}
		}
	})
}

// "TryLevels is like LockLevels, but waits only for the time within, or three times as long if all rows are locked.
// Then it leaves out the SKUs whose rows another transaction has locked."
func TestTx_TryLevels(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		s := newShop(t, kind.New(t, "innodb_lock_wait_timeout=600").Migrated(t), 10, "cap", "hat", "mug")
		try := func(skus ...string) (levels order.Levels) {
			s.undone(t, func(tx order.Tx) (err error) {
				if levels, err = tx.TryLevels(skus, 50*time.Millisecond); err != nil || len(levels.SKUs) == 0 {
					return err
				}
				return tx.Take(stock.Conditional, one(skus[0])) // the transaction is still open
			})
			return levels
		}
		names := func(levels order.Levels) []string { return slices.Sorted(maps.Keys(levels.SKUs)) }
		all := []string{"cap", "hat", "mug"}
		if got := try(all...); !slices.Equal(names(got), all) || got.SKUs["cap"].Level != level(10, 0) || got.At.IsZero() {
			t.Errorf("all: got %+v", got)
		}
		s.undone(t, func(tx order.Tx) error {
			if _, err := tx.LockLevels([]string{"hat"}); err != nil {
				return err
			}
			if got := names(try(all...)); !slices.Equal(got, []string{"cap", "mug"}) {
				t.Errorf("hat is locked: got %v", got)
			}
			if got := names(try("hat")); len(got) > 0 {
				t.Errorf("hat alone: got %v", got)
			}
			return nil
		})
	})
}

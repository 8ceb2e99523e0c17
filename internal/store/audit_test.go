package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

func ignoreAccount(stock.Account) error       { return nil }
func ignoreDifference(stock.Difference) error { return nil }

// "It calls account for each SKU, in the order of names". A shop without SKUs has no differences.
func TestStore_Audit_clean(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		if accounts, found := (shop{st}).audit(t, ""); len(accounts)+len(found) > 0 {
			t.Errorf("got %v and %v, want nothing", accounts, found)
		}
		s := newShop(t, st, 10, "mug", "hat", "cup")
		s.mustPlace(t, draft("ann", "k1", "mug", "hat"), draft("bob", "k1", "mug"))
		if _, _, err := s.Supply(t.Context(), delivery("cup", "k", 5)); err != nil {
			t.Fatal(err)
		}
		want := []stock.Account{
			{SKU: "cup", Level: level(15, 0), Ledger: level(15, 0)},
			{SKU: "hat", Level: level(8, 2), Ledger: level(8, 2), OrderedUnits: 2, OpenUnits: 2, Orders: 1},
			{SKU: "mug", Level: level(6, 4), Ledger: level(6, 4), OrderedUnits: 4, OpenUnits: 4, Orders: 2},
		}
		for sku, want := range map[string][]stock.Account{"": want, "mug": want[2:]} {
			accounts, found := s.audit(t, sku)
			if diff := cmp.Diff(want, accounts); diff != "" || len(found) > 0 {
				t.Errorf("%q: got differences %v, accounts (-want +got):\n%s", sku, found, diff)
			}
		}
		// MySQL compares without the blanks at the end.
		for _, name := range []string{"pen", "MUG", " ", "mug ", "mug\x00", "\xff"} {
			if err := s.Audit(t.Context(), name, ignoreAccount, ignoreDifference); !errors.Is(err, order.ErrUnknownSKU) {
				t.Errorf("%q: got %v, want ErrUnknownSKU", name, err)
			}
		}
	})
}

// "An error of either ends the audit and is returned as it is."
func TestStore_Audit_callbackFails(t *testing.T) {
	t.Parallel()
	mine := errors.New("mine")
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 10, "mug", "hat")
		s.mustPlace(t, draft("ann", "k1", "mug"))
		storetest.Exec(t, s.Store, "DELETE FROM idempotency_keys")
		err := s.Audit(t.Context(), "", func(stock.Account) error { return mine }, ignoreDifference)
		if err != mine { //nolint:errorlint // as it is
			t.Errorf("account fails: got %v, want the error itself", err)
		}
		err = s.Audit(t.Context(), "", ignoreAccount, func(stock.Difference) error { return mine })
		if err != mine { //nolint:errorlint // as it is
			t.Errorf("difference fails: got %v, want the error itself", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = s.Audit(ctx, "", func(stock.Account) error { cancel(); return nil }, ignoreDifference)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: got %v, want context.Canceled", err)
		}
	})
}

// "Each step is one statement, which compares rows of one moment, so that a change of the schema waits for one step at
// most"; "buyers do not wait for it": before each step, a buyer places an order, and the schema is changed.
func TestStore_Audit_steps(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "wait_timeout=60")
		s := newShop(t, database.Migrated(t), 1_000, "mug", "hat")
		s.mustPlace(t, draft("ann", "k1", "mug"))
		steps := 0
		audited := shop{database.Through(t, at("SELECT", testserver.Pass, func() {
			steps++
			s.mustPlace(t, draft("bob", order.NewID(), "hat", "mug"))
			storetest.Exec(t, s.Store, "ALTER TABLE orders COMMENT 'changed'") // waits for no step
		})).Open(t)}
		steps = 0
		audited.wantClean(t)
		if steps < 20 {
			t.Errorf("got %d steps, want one for each check at least", steps)
		}
	})
}

// "An order moves its units once in each way": the schema refuses a second row.
func TestSchema_movesOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 10, "mug")
		d := draft("ann", "k1", "mug")
		s.mustPlace(t, d)
		for _, kind := range []stock.Kind{stock.Reserve, stock.Release} {
			record := func() error {
				return s.InTx(t.Context(), func(tx order.Tx) error { return tx.Record(moved(kind, d, d.Lines[0])) })
			}
			if first := record(); (first == nil) != (kind == stock.Release) {
				t.Errorf("%s: got %v", kind, first)
			}
			if err := record(); err == nil {
				t.Errorf("a second %s of a line was recorded", kind)
			}
		}
		s.wantRows(t, rows{Orders: 1, Lines: 1, Movements: 3, Keys: 1})
	})
}

package orderstore_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// "It hands each SKU's account to account, in the order of names."
func TestStore_Audit_clean(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "mug", "hat", "cap")
		s.mustPlace(t, draft("ann", "k1", "mug", "hat"), draft("bob", "k1", "mug"))
		want := []stock.Account{
			{SKU: "cap", Level: level(10, 0), Ledger: level(10, 0)},
			{SKU: "hat", Level: level(8, 2), Ledger: level(8, 2), OrderedUnits: 2, OpenUnits: 2, Orders: 1},
			{SKU: "mug", Level: level(6, 4), Ledger: level(6, 4), OrderedUnits: 4, OpenUnits: 4, Orders: 2},
		}
		accounts, found := s.audit(t, "")
		if diff := cmp.Diff(want, accounts); diff != "" {
			t.Errorf("accounts (-want +got):\n%s", diff)
		}
		if len(found) > 0 {
			t.Errorf("got %v, want no difference", found)
		}
		accounts, found = s.audit(t, "mug")
		if diff := cmp.Diff(want[2:], accounts); diff != "" {
			t.Errorf("account of one (-want +got):\n%s", diff)
		}
		if len(found) > 0 {
			t.Errorf("one SKU: got %v, want no difference", found)
		}
	})
}

// "A name that no SKU has is stock.ErrUnknownSKU, also where the database takes it
// for another": MySQL compares without the blanks at the end.
func TestStore_Audit_unknownSKU(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "mug")
		for _, name := range []string{"cup", "MUG", " ", "mug ", "mug\x00", "\xff"} {
			err := s.orders.Audit(t.Context(), name, ignoreAccount, ignoreDifference)
			if !errors.Is(err, stock.ErrUnknownSKU) {
				t.Errorf("%q: got %v, want ErrUnknownSKU", name, err)
			}
		}
	})
}

// A shop without SKUs is in order.
func TestStore_Audit_empty(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		if accounts, found := newShop(t, db, 0).audit(t, ""); len(accounts)+len(found) > 0 {
			t.Errorf("got %v and %v, want nothing", accounts, found)
		}
	})
}

// "Their errors end the audit and come back as they are."
func TestStore_Audit_callbackFails(t *testing.T) {
	t.Parallel()
	mine := errors.New("mine")
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "mug", "hat")
		s.mustPlace(t, draft("ann", "k1", "mug"))
		tamper(t, s, "DELETE FROM idempotency_keys")
		err := s.orders.Audit(t.Context(), "", func(stock.Account) error { return mine }, ignoreDifference)
		if err != mine { //nolint:errorlint // as it is
			t.Errorf("account fails: got %v, want the error itself", err)
		}
		err = s.orders.Audit(t.Context(), "", ignoreAccount, func(stock.Difference) error { return mine })
		if err != mine { //nolint:errorlint // as it is
			t.Errorf("difference fails: got %v, want the error itself", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = s.orders.Audit(ctx, "", func(stock.Account) error { cancel(); return nil }, ignoreDifference)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: got %v, want context.Canceled", err)
		}
	})
}

// "As they are at one moment; buyers are not held up": while the audit runs, a
// buyer places an order and a vandal deletes a row. It sees neither.
func TestStore_Audit_snapshot(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "mug", "hat")
		s.mustPlace(t, draft("ann", "k1", "mug"))
		meanwhile := func(a stock.Account) error {
			if a.SKU != "hat" { // the first
				return nil
			}
			if err := s.place(t.Context(), draft("bob", "k1", "mug")); err != nil {
				return err
			}
			return s.db.Exec("DELETE FROM idempotency_keys WHERE buyer = 'ann'").Error
		}
		err := s.orders.Audit(t.Context(), "", meanwhile, func(d stock.Difference) error {
			t.Errorf("got %+v, want no difference", d)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, found := s.audit(t, ""); len(found) != 1 {
			t.Errorf("afterwards: got %v, want the vandal's work", found)
		}
	})
}

// "Streams: its memory does not grow with the number of orders."
func TestStore_Audit_memory(t *testing.T) { // not parallel: the heap is everybody's
	const orders = 5_000
	db := storetest.Kinds()[0].New(t, "").Migrated(t)
	s := newShop(t, db, 2*orders, "mug")
	const each = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT "
	tamper(t, s,
		"INSERT INTO orders (id, buyer, idempotency_key, status, total_minor, currency, created_at) "+each+"i, 'ann', i, 'pending', 0, 'EUR', '2026-01-01 00:00:00.000000' FROM n",
		"INSERT INTO order_lines "+each+"i, 'mug', 1, 2, 0, 'EUR' FROM n",
		"INSERT INTO movements "+each+"'mug', i, 'reserve', i, 0, -2, 2, 0, 0, '2026-01-01 00:00:00.000000' FROM n",
		"UPDATE skus SET available = 0, reserved = 10000")
	// No order has its key: as many differences as orders are streamed.
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	found := 0
	var most uint64
	err := s.orders.Audit(t.Context(), "", ignoreAccount, func(stock.Difference) error {
		if found++; found%1000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found != orders {
		t.Errorf("got %d differences, want %d", found, orders)
	}
	if grown := int64(most) - int64(before.HeapAlloc); grown > orders*50 {
		t.Errorf("heap grew by %d bytes over %d differences, want it not to grow", grown, orders)
	}
}

func ignoreAccount(stock.Account) error       { return nil }
func ignoreDifference(stock.Difference) error { return nil }

func level(available, reserved int64) stock.Level {
	return stock.Level{Supplied: available + reserved, Available: available, Reserved: reserved}
}

func tamper(t testing.TB, s shop, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if err := s.db.Exec(statement).Error; err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }

var (
	// placedAt has more than whole seconds, so that a column that cuts them shows.
	placedAt = time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.UTC)
	// farOff is when a draft expires: not while a test runs.
	farOff = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	price  = stock.Money{Minor: 1250, Currency: "EUR"}
)

// shop is a store with helpers.
type shop struct{ *store.Store }

// newShop puts units of each SKU on sale.
func newShop(t testing.TB, s *store.Store, units int64, names ...string) shop {
	t.Helper()
	for _, name := range names {
		sku, err := stock.NewSKU(name, price, units, placedAt)
		testserver.Must(t, err)
		if err := s.Create(t.Context(), sku); err != nil {
			t.Fatalf("create %q: %v", name, err)
		}
	}
	return shop{s}
}

// draft is an order of two units of each SKU.
func draft(buyer, key string, skus ...string) *order.Draft {
	d := &order.Draft{Order: order.Order{
		ID: order.NewID(), Buyer: buyer, Key: key, Status: order.Pending, CreatedAt: placedAt, ExpiresAt: farOff,
		Total: stock.Money{Currency: price.Currency},
	}}
	for _, sku := range skus {
		d.Lines = append(d.Lines, order.Line{SKU: sku, Units: 2, Price: price})
		d.Total.Minor += 2 * price.Minor
	}
	d.Fingerprint = order.Fingerprint(d.Lines)
	return d
}

func one(sku string) stock.Take { return stock.Take{SKU: sku, Units: 1} }

// write does in tx what a strategy does.
func write(tx order.Tx, drafts ...*order.Draft) error {
	if err := claim(tx, drafts...); err != nil {
		return err
	}
	var orders []order.Order
	var movements []stock.Movement
	for _, d := range drafts {
		orders = append(orders, d.Order)
		for _, line := range d.Lines {
			if err := tx.Take(stock.Conditional, stock.Take{SKU: line.SKU, Units: line.Units}); err != nil {
				return err
			}
			movements = append(movements, moved(stock.Reserve, d, line))
		}
	}
	if err := tx.Insert(orders...); err != nil {
		return err
	}
	return tx.Record(movements...)
}

func claims(drafts ...*order.Draft) (all []order.UsedKey) {
	for _, d := range drafts {
		all = append(all, order.UsedKey{Order: d.Order, Fingerprint: d.Fingerprint})
	}
	return all
}

// claim claims keys, all or none.
func claim(tx order.Tx, drafts ...*order.Draft) error {
	taken, err := tx.ClaimKeys(claims(drafts...)...)
	if len(taken) > 0 {
		return order.ErrKeyTaken
	}
	return err
}

// lockBuyer locks a buyer's row.
func lockBuyer(tx order.Tx, buyer string) error {
	others, err := tx.LockBuyers(buyer)
	if len(others) > 0 {
		return order.ErrLocked
	}
	return err
}

func moved(kind stock.Kind, d *order.Draft, line order.Line) stock.Movement {
	return stock.Movement{ID: order.NewID(), SKU: line.SKU, Kind: kind, OrderID: d.ID, At: d.CreatedAt, Level: kind.Change(line.Units)}
}

func (s shop) place(ctx context.Context, drafts ...*order.Draft) error {
	return s.InTx(ctx, func(tx order.Tx) error { return write(tx, drafts...) })
}

func (s shop) mustPlace(t testing.TB, drafts ...*order.Draft) {
	t.Helper()
	for _, d := range drafts {
		if err := s.place(t.Context(), d); err != nil {
			t.Fatalf("place: %v", err)
		}
	}
}

// placedAgo places orders whose age is given, keys included, by the database's clock.
func (s shop) placedAgo(t testing.TB, age time.Duration, drafts ...*order.Draft) {
	t.Helper()
	for _, d := range drafts {
		now, err := s.Now(t.Context())
		testserver.Must(t, err)
		d.CreatedAt = now.Add(-age)
		s.mustPlace(t, d)
		_, err = s.DB().ExecContext(t.Context(), "UPDATE idempotency_keys SET created_at = ? WHERE buyer = ? AND idempotency_key = ?",
			d.CreatedAt.Format("2006-01-02 15:04:05.000000"), d.Buyer, d.Key)
		testserver.Must(t, err)
	}
}

// take runs Take in a transaction of its own.
func (s shop) take(t testing.TB, mode stock.TakeMode, want stock.Take) error {
	t.Helper()
	return s.InTx(t.Context(), func(tx order.Tx) error { return tx.Take(mode, want) })
}

// undone runs fn in a transaction that is rolled back.
func (s shop) undone(t testing.TB, fn func(tx order.Tx) error) {
	t.Helper()
	undo := errors.New("undo")
	err := s.InTx(t.Context(), func(tx order.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return undo
	})
	if !errors.Is(err, undo) {
		t.Errorf("got %v, want the transaction to be undone", err)
	}
}

func (s shop) sku(t testing.TB, name string) stock.SKU {
	t.Helper()
	sku, err := s.SKU(t.Context(), name)
	if err != nil {
		t.Fatalf("read %q: %v", name, err)
	}
	return sku
}

func (s shop) wantLevel(t testing.TB, name string, want stock.Level) {
	t.Helper()
	if got := s.sku(t, name).Level; got != want {
		t.Errorf("%s: got %v, want %v", name, got, want)
	}
}

func level(available, reserved int64) stock.Level {
	return stock.Level{Supplied: available + reserved, Available: available, Reserved: reserved}
}

// audit returns what the audit of a SKU, or of all, reports.
func (s shop) audit(t testing.TB, sku string) (accounts []stock.Account, found []stock.Difference) {
	t.Helper()
	err := s.Audit(t.Context(), sku,
		func(a stock.Account) error { accounts = append(accounts, a); return nil },
		func(d stock.Difference) error { found = append(found, d); return nil })
	if err != nil {
		t.Fatalf("audit: %v", err)
	}
	return accounts, found
}

func (s shop) wantClean(t testing.TB) {
	t.Helper()
	if _, found := s.audit(t, ""); len(found) > 0 {
		t.Errorf("audit: got %v, want no difference", found)
	}
}

// rows is how many rows each table has that an order writes to.
type rows struct{ Orders, Lines, Movements, Keys int64 }

func (s shop) wantRows(t testing.TB, want rows) {
	t.Helper()
	var got rows
	for table, count := range map[string]*int64{
		"orders": &got.Orders, "order_lines": &got.Lines, "movements": &got.Movements, "idempotency_keys": &got.Keys,
	} {
		testserver.Must(t, s.DB().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(count))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// wantUntouched checks that nothing but the SKUs' creation is in the database.
func (s shop) wantUntouched(t testing.TB, units int64) {
	t.Helper()
	accounts, _ := s.audit(t, "")
	for _, a := range accounts {
		if a.Level != level(units, 0) || a.OrderedUnits != 0 {
			t.Errorf("account: got %+v, want %d units and no orders", a, units)
		}
	}
	s.wantClean(t)
	s.wantRows(t, rows{Movements: int64(len(accounts))})
}

// at judges statements: before those that begin with a word it calls before, if there is one, and then
// does this to them. The others pass.
func at(word string, fate testserver.Fate, before func()) func(statement string) testserver.Fate {
	return func(statement string) testserver.Fate {
		if !strings.HasPrefix(statement, word) {
			return testserver.Pass
		}
		if before != nil {
			before()
		}
		return fate
	}
}

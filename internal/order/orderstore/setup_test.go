package orderstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/stockstore"
)

// placedAt has more than whole seconds, so that a column that cuts them shows.
var placedAt = time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.UTC)

// farOff is when a draft expires: not while a test runs.
var farOff = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

var price = stock.Money{Minor: 1250, Currency: "EUR"}

// shop is a database with the two stores on it.
type shop struct {
	db     *gorm.DB
	orders *orderstore.Store
	stock  *stockstore.Store
}

// newShop puts units of each SKU on sale.
func newShop(t testing.TB, db *gorm.DB, units int64, names ...string) shop {
	t.Helper()
	s := shop{db: db, orders: orderstore.New(db), stock: stockstore.New(db)}
	for _, name := range names {
		sku, err := stock.NewSKU(name, price, units, placedAt)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.stock.Create(t.Context(), sku); err != nil {
			t.Fatalf("create %q: %v", name, err)
		}
	}
	return s
}

// draft is an order of two units of each SKU.
func draft(buyer, key string, skus ...string) order.Order {
	o := order.Order{ID: newID(), Buyer: buyer, Key: key, Status: order.Pending, CreatedAt: placedAt, ExpiresAt: farOff, Total: price.Times(0)}
	for _, sku := range skus {
		line := order.Line{SKU: sku, Units: 2, Price: price}
		o.Lines = append(o.Lines, line)
		o.Total.Minor += line.Price.Times(line.Units).Minor
	}
	return o
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// write does in tx what a checkout does.
func write(tx order.Tx, o order.Order) error {
	if err := tx.ClaimKeys(order.Claim{Order: o, Fingerprint: "fingerprint of " + o.Key}); err != nil {
		return err
	}
	for _, line := range o.Lines {
		if err := tx.Take(stock.Conditional, stock.Take{SKU: line.SKU, Units: line.Units}); err != nil {
			return err
		}
	}
	if err := tx.Add(o); err != nil {
		return err
	}
	var movements []stock.Movement
	for _, line := range o.Lines {
		movements = append(movements, reservation(o, line))
	}
	return tx.Record(movements...)
}

func reservation(o order.Order, line order.Line) stock.Movement {
	return stock.Movement{
		ID: newID(), SKU: line.SKU, Kind: stock.Reserve, OrderID: o.ID, At: o.CreatedAt,
		Change: stock.Level{Available: -line.Units, Reserved: line.Units},
	}
}

func (s shop) place(ctx context.Context, o order.Order) error {
	return s.orders.InTx(ctx, func(tx order.Tx) error { return write(tx, o) })
}

func (s shop) mustPlace(t testing.TB, orders ...order.Order) {
	t.Helper()
	for _, o := range orders {
		if err := s.place(t.Context(), o); err != nil {
			t.Fatalf("place: %v", err)
		}
	}
}

// audit returns what the audit of a SKU, or of all, reports.
func (s shop) audit(t testing.TB, sku string) (accounts []stock.Account, found []stock.Difference) {
	t.Helper()
	err := s.orders.Audit(t.Context(), sku,
		func(a stock.Account) error { accounts = append(accounts, a); return nil },
		func(d stock.Difference) error { found = append(found, d); return nil })
	if err != nil {
		t.Fatalf("audit: %v", err)
	}
	return accounts, found
}

// rows is how many rows each table has that an order writes to.
type rows struct{ Orders, Lines, Movements, Keys int64 }

func (s shop) wantRows(t testing.TB, want rows) {
	t.Helper()
	var got rows
	for table, count := range map[string]*int64{
		"orders": &got.Orders, "order_lines": &got.Lines, "movements": &got.Movements, "idempotency_keys": &got.Keys,
	} {
		if err := s.db.Table(table).Count(count).Error; err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// wantUntouched checks that nothing but the SKUs' creation is in the database.
func (s shop) wantUntouched(t testing.TB, units int64) {
	t.Helper()
	accounts, found := s.audit(t, "")
	for _, a := range accounts {
		if want := (stock.Level{Supplied: units, Available: units}); a.Level != want || a.OrderedUnits != 0 {
			t.Errorf("account: got %+v, want level %+v and no orders", a, want)
		}
	}
	if len(found) > 0 {
		t.Errorf("audit: got %v, want no difference", found)
	}
	s.wantRows(t, rows{Movements: int64(len(accounts))})
}

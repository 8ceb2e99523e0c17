package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

type orderRow struct {
	ID             string `gorm:"primaryKey"`
	Buyer          string
	IdempotencyKey string
	Status         string
	TotalMinor     int64
	Currency       string
	CreatedAt      dbTime
	ExpiresAt      dbTime
	FirstExpiry    dbTime `gorm:"->"` // Extend writes it
	Due            bool   `gorm:"->"` // LockOrders reads it

	Lines []lineRow `gorm:"foreignKey:OrderID"` // find reads them
}

func (orderRow) TableName() string { return "orders" }

type lineRow struct {
	OrderID    string `gorm:"primaryKey"`
	SKU        string `gorm:"primaryKey"`
	LineNo     int
	Units      int64
	PriceMinor int64
	Currency   string
}

func (lineRow) TableName() string { return "order_lines" }

func (r orderRow) order() order.Order {
	return order.Order{
		ID: r.ID, Buyer: r.Buyer, Key: r.IdempotencyKey, Status: order.Status(r.Status),
		Lines: order.Map(r.Lines, func(l lineRow) order.Line {
			return order.Line{SKU: l.SKU, Units: l.Units, Price: stock.Money{Minor: l.PriceMinor, Currency: l.Currency}}
		}),
		Total:     stock.Money{Minor: r.TotalMinor, Currency: r.Currency},
		CreatedAt: r.CreatedAt.Time, ExpiresAt: r.ExpiresAt.Time, FirstExpiry: r.FirstExpiry.Time,
	}
}

// Orders implements order.Store.
func (s *Store) Orders(ctx context.Context, ids ...string) ([]order.Order, error) {
	seen := s.changes()
	orders, err := s.read(ctx, s.db.Where("id IN ?", ids))
	if err == nil && len(orders) < len(ids) {
		err = s.unconfirmed(ctx, seen)
	}
	return orders, err
}

// OfBuyer implements order.Store.
func (s *Store) OfBuyer(ctx context.Context, buyer, before string, limit int) ([]order.Order, error) {
	query := s.db.Where("buyer = ?", buyer).Order("id DESC").Limit(limit)
	if before != "" {
		query = query.Where("id < ?", before)
	}
	return s.read(ctx, query)
}

// Due implements order.Store.
func (s *Store) Due(ctx context.Context, after order.Order, limit int) ([]order.Order, error) {
	behind := dbTime{after.ExpiresAt}
	return s.read(ctx, s.db.Where("status = ? AND expires_at <= "+s.clock, order.Pending).
		Where("(expires_at > ? OR expires_at = ? AND id > ?)", behind, behind, after.ID).
		Order("expires_at, id").Limit(limit))
}

// read returns the orders that a query outside of a transaction finds.
func (s *Store) read(ctx context.Context, query *gorm.DB) ([]order.Order, error) {
	rows, err := find(query.WithContext(ctx))
	return order.Map(rows, orderRow.order), explain(ctx, "read orders", err)
}

// find returns the orders that a query finds, and reads their lines by one more query. The queries need no common
// snapshot, because lines are written with their order and never change.
func find(query *gorm.DB) (rows []orderRow, err error) {
	err = query.Preload("Lines", func(lines *gorm.DB) *gorm.DB { return lines.Order("line_no") }).Find(&rows).Error
	return rows, err
}

// Insert implements order.Tx by one statement for all orders, and another for all their lines.
func (t *tx) Insert(orders ...order.Order) error {
	var rows []orderRow
	var lines []lineRow
	for _, o := range orders {
		rows = append(rows, orderRow{
			ID: o.ID, Buyer: o.Buyer, IdempotencyKey: o.Key, Status: string(o.Status),
			TotalMinor: o.Total.Minor, Currency: o.Total.Currency,
			CreatedAt: dbTime{o.CreatedAt}, ExpiresAt: dbTime{o.ExpiresAt},
		})
		for j, line := range o.Lines {
			lines = append(lines, lineRow{
				OrderID: o.ID, SKU: line.SKU, LineNo: j + 1, Units: line.Units,
				PriceMinor: line.Price.Minor, Currency: line.Price.Currency,
			})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	t.inserted = append(t.inserted, orders...)
	err := t.db.Create(&rows).Error
	if err == nil && len(lines) > 0 {
		err = t.db.Create(&lines).Error
	}
	return failed(err, "insert %d orders", len(rows))
}

// Delete implements order.Tx. It deletes one order at a time: for several, MariaDB would scan a small
// table, and meet the locks of other transactions.
func (t *tx) Delete(ids ...string) error {
	for _, id := range ids {
		err := t.db.Exec("DELETE FROM order_lines WHERE order_id = ?", id).Error
		if err == nil {
			err = t.db.Exec("DELETE FROM orders WHERE id = ?", id).Error
		}
		if err != nil {
			return failed(err, "delete order")
		}
	}
	t.inserted = slices.DeleteFunc(t.inserted, func(o order.Order) bool { return slices.Contains(ids, o.ID) })
	return nil
}

// LockOrders implements order.Tx. The clock of the database decides whether an order is due, not the
// clock of an instance.
func (t *tx) LockOrders(ids ...string) (map[string]order.Found, error) {
	query, lock := "SELECT *, expires_at <= "+t.store.clock+" AS due FROM orders", ""
	if !t.store.sqlite {
		query += " FORCE INDEX (PRIMARY)" // MariaDB would scan a small table
		lock = " FOR UPDATE SKIP LOCKED"
	}
	found := map[string]order.Found{}
	rows, err := find(t.db.Raw(query+" WHERE id IN ?"+lock, ids))
	for _, r := range rows {
		found[r.ID] = order.Found{Order: r.order(), Due: r.Due, Locked: true}
	}
	if err == nil && len(found) < len(ids) {
		rows, err = find(t.db.Where("id IN ?", ids))
		for _, r := range rows {
			if _, known := found[r.ID]; !known {
				found[r.ID] = order.Found{Order: r.order()}
			}
		}
	}
	return found, failed(err, "lock %d orders", len(ids))
}

func (t *tx) Extend(o order.Order) error {
	return failed(mustMatch(t.db, order.ErrBusy, "UPDATE orders SET expires_at = ?, first_expiry = ? WHERE id = ? AND status = ?",
		dbTime{o.ExpiresAt}, dbTime{o.FirstExpiry}, o.ID, order.Pending), "extend order")
}

// EndAll implements order.Tx, by one statement.
func (t *tx) EndAll(ids map[order.Status][]string) error {
	if len(ids) == 0 {
		return nil
	}
	table := "orders"
	if !t.store.sqlite {
		table += " FORCE INDEX (PRIMARY)" // as in LockOrders
	}
	statement := "UPDATE " + table + " SET status = CASE"
	var all []string
	var values []any
	for status, some := range ids {
		statement += " WHEN id IN ? THEN ?"
		values = append(values, some, status)
		all = append(all, some...)
	}
	done := t.db.Exec(statement+" END WHERE id IN ? AND status = ?", append(values, all, order.Pending)...)
	if done.Error == nil && done.RowsAffected != int64(len(all)) {
		return order.ErrBusy // the locks were lost
	}
	return failed(done.Error, "end %d orders", len(all))
}

// LockBuyers implements order.Tx. A new buyer gets a row.
func (t *tx) LockBuyers(buyers ...string) (others []string, err error) {
	sorted, locked := slices.Sorted(slices.Values(buyers)), map[string]bool{}
	if !t.store.sqlite { // in SQLite, no other transaction writes
		others, err = withoutWaiting(sorted, func(some []string) error {
			found, err := selectBuyers(t.db, some)
			for _, b := range found {
				locked[b] = true
			}
			return err
		})
	}
	if err == nil {
		err = insertBuyers(t.db, slices.DeleteFunc(sorted, func(b string) bool { return locked[b] || slices.Contains(others, b) }))
	}
	return others, failed(err, "lock %d buyers", len(buyers))
}

// withoutWaiting locks rows by NOWAIT, and returns the rows that other transactions have locked. If not all rows can be
// locked at once, it tries each half.
func withoutWaiting[R any](rows []R, lock func([]R) error) (others []R, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	began := time.Now()
	err = lock(rows)
	switch {
	case classify(err) != lockWait, time.Since(began) > time.Second: // NOWAIT waits while the whole table is locked
		return nil, err
	case len(rows) == 1: // another transaction has locked the row or is inserting it
		return slices.Clone(rows), nil
	}
	others, err = withoutWaiting(rows[:len(rows)/2], lock)
	if err != nil {
		return nil, err
	}
	more, err := withoutWaiting(rows[len(rows)/2:], lock)
	return append(others, more...), err
}

// selectBuyers locks the rows of those buyers that have a row, and returns their names. In READ
// COMMITTED, it locks no gap for the others. For buyer IN (...), a server would scan a small table and
// meet all locks; a join looks up each buyer.
func selectBuyers(db *gorm.DB, among []string) (locked []string, err error) {
	names := "SELECT ? AS buyer" + strings.Repeat(" UNION ALL SELECT ?", len(among)-1)
	values := order.Map(among, func(buyer string) any { return buyer })
	err = db.Raw("SELECT STRAIGHT_JOIN b.buyer FROM ("+names+") AS n JOIN buyers AS b FORCE INDEX (PRIMARY) ON b.buyer = n.buyer "+
		"FOR UPDATE NOWAIT", values...).Scan(&locked).Error
	return locked, err
}

// insertBuyers inserts the missing rows. If another transaction inserts one of them, it waits. The buyers are sorted,
// so that two transactions do not wait for each other.
func insertBuyers(db *gorm.DB, buyers []string) error {
	if len(buyers) == 0 {
		return nil
	}
	rows := order.Map(buyers, func(b string) struct{ Buyer string } { return struct{ Buyer string }{b} })
	return db.Table("buyers").Clauses(clause.OnConflict{DoNothing: true}).Create(&rows).Error
}

// Open implements order.Tx.
//
// A plain SELECT is exact. It sees all that was committed before, and no other transaction can change
// the number while the rows of the buyers are locked.
func (t *tx) Open(buyers ...string) (map[string]order.OpenOrders, error) {
	var counts []struct {
		Buyer  string
		Orders int
		First  dbTime
	}
	err := t.db.Model(&orderRow{}).Where("buyer IN ? AND status = ?", buyers, order.Pending).
		Select("buyer, COUNT(*) AS orders, MIN(expires_at) AS first").Group("buyer").Find(&counts).Error
	open := map[string]order.OpenOrders{}
	for _, c := range counts {
		open[c.Buyer] = order.OpenOrders{Count: c.Orders, First: c.First.Time}
	}
	return open, failed(err, "count open orders")
}

// LockBought implements order.Tx. Only a recount or another program can have locked one of these rows: every other
// transaction of the shop has locked the SKU's row before.
func (t *tx) LockBought(of ...order.BuyerSKU) (bought map[order.BuyerSKU]int64, others []order.BuyerSKU, err error) {
	bought = map[order.BuyerSKU]int64{}
	pair := func(b order.BuyerSKU) []any { return []any{b.SKU, b.Buyer} }
	others, err = withoutWaiting(slices.SortedFunc(slices.Values(of), byUnitsKey), func(some []order.BuyerSKU) error {
		var rows []struct {
			SKU, Buyer string
			Units      int64
		}
		table := "buyer_units"
		if !t.store.sqlite {
			table += " FORCE INDEX (PRIMARY)" // a scan of a small table would meet the locks of other transactions
		}
		query := t.db.Table(table).Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate, Options: clause.LockingOptionsNoWait})
		err := oneOf(query, "sku = ? AND buyer = ?", some, pair).Find(&rows).Error
		for _, row := range rows {
			bought[order.BuyerSKU{Buyer: row.Buyer, SKU: row.SKU}] = row.Units
		}
		return err
	})
	return bought, others, failed(err, "lock what was bought")
}

func byUnitsKey(a, b order.BuyerSKU) int {
	return cmp.Or(cmp.Compare(a.SKU, b.SKU), cmp.Compare(a.Buyer, b.Buyer))
}

func (t *tx) AddBought(units map[order.BuyerSKU]int64) error {
	if len(units) == 0 {
		return nil
	}
	of := slices.SortedFunc(maps.Keys(units), byUnitsKey)
	known := " ON DUPLICATE KEY UPDATE units = units + VALUES(units)"
	if t.store.sqlite {
		known = " ON CONFLICT DO UPDATE SET units = units + excluded.units"
	}
	rows := values(of, func(b order.BuyerSKU) []any { return []any{b.SKU, b.Buyer, units[b]} })
	return failed(t.db.Exec("INSERT INTO buyer_units (sku, buyer, units) VALUES ?"+known, rows).Error, "count what was bought")
}

// dbTime is a DATETIME(6): UTC, whole microseconds. SQLite's driver returns text, and MySQL's driver returns a time.
type dbTime struct{ time.Time }

// timeLayout is the text of a time in SQLite. All texts have one length, so that they sort by time.
const timeLayout = "2006-01-02 15:04:05.000000"

func (t dbTime) Value() (driver.Value, error) { return t.UTC().Format(timeLayout), nil }

func (t *dbTime) Scan(value any) (err error) {
	switch v := value.(type) {
	case time.Time:
		t.Time = v.UTC()
	case string:
		t.Time, err = time.Parse(timeLayout, v)
	default:
		err = fmt.Errorf("column DATETIME(6): want a time or text, got %T", value)
	}
	return err
}

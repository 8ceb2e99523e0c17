package store

import (
	"context"
	"database/sql"
	"errors"
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

type skuRow struct {
	Name          string `gorm:"primaryKey"`
	PriceMinor    int64
	Currency      string
	LimitPerBuyer int64
	Level         stock.Level `gorm:"embedded"`
	Fence         int64
	CreatedAt     dbTime
}

func (skuRow) TableName() string { return "skus" }

func (r skuRow) sku() stock.SKU {
	return stock.SKU{
		Name: r.Name, Price: stock.Money{Minor: r.PriceMinor, Currency: r.Currency}, LimitPerBuyer: r.LimitPerBuyer,
		Level: r.Level, Fence: r.Fence, CreatedAt: r.CreatedAt.Time,
	}
}

type movementRow struct {
	SKU       string `gorm:"primaryKey"`
	ID        string `gorm:"primaryKey"`
	Kind      stock.Kind
	OrderID   sql.NullString
	Change    stock.Level `gorm:"embedded"`
	Fence     int64
	CreatedAt dbTime
}

func (movementRow) TableName() string { return "movements" }

func (r movementRow) movement() stock.Movement {
	return stock.Movement{
		ID: r.ID, SKU: r.SKU, Kind: r.Kind, OrderID: r.OrderID.String, Level: r.Change, Fence: r.Fence, At: r.CreatedAt.Time,
	}
}

// Levels implements order.Store.
func (s *Store) Levels(ctx context.Context, lines ...order.Line) (order.Levels, error) {
	seen := s.changes()
	wanted := order.Order{Lines: lines}
	levels, err := s.levels(s.db.WithContext(ctx), wanted.SKUs())
	// Too few units lead to a refusal, which has to be confirmed.
	if err == nil && levels.Cover(&order.Draft{Order: wanted}) != nil {
		err = s.unconfirmed(ctx, seen)
	}
	return levels, s.confirm(ctx, seen, explain(ctx, fmt.Sprintf("read levels of %q", wanted.SKUs()), err))
}

func (t *tx) Levels(skus []string) (levels order.Levels, err error) {
	levels, err = t.store.levels(t.db, skus)
	return levels, failed(err, "read levels of %q", skus)
}

// LockLevels implements order.Tx. Rows are locked in the order of their names.
func (t *tx) LockLevels(skus []string) (levels order.Levels, err error) {
	levels, err = t.store.levels(t.db.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Order("name"), skus)
	return levels, failed(err, "lock levels of %q", skus)
}

func (s *Store) levels(db *gorm.DB, names []string) (order.Levels, error) {
	if len(names) == 0 {
		return order.Levels{}, nil
	}
	var rows []levelRow
	distinct := slices.Compact(slices.Sorted(slices.Values(names)))
	if err := db.Table("skus").Select("*, "+s.clock+" AS read_at").Where("name IN ?", distinct).Find(&rows).Error; err != nil {
		return order.Levels{}, err
	}
	levels := toLevels(rows)
	for _, name := range names {
		if _, known := levels.SKUs[name]; !known {
			return order.Levels{}, fmt.Errorf("sku %q: %w", name, order.ErrUnknownSKU)
		}
	}
	return levels, nil
}

type levelRow struct {
	SKU    skuRow `gorm:"embedded"`
	ReadAt dbTime
}

func toLevels(rows []levelRow) order.Levels {
	levels := order.Levels{SKUs: map[string]stock.SKU{}}
	for _, row := range rows {
		levels.SKUs[row.SKU.Name], levels.At = row.SKU.sku(), row.ReadAt.Time
	}
	return levels
}

// TryLevels implements order.Tx. A SELECT can have a time limit in milliseconds; InnoDB's own limit has whole seconds.
// (MariaDB executes the first comment, and MySQL the second.) If all rows are still locked, TryLevels waits again,
// because in a crowd of transactions each waits for those before.
func (t *tx) TryLevels(skus []string, within time.Duration) (order.Levels, error) {
	if len(skus) == 0 || t.store.sqlite { // in SQLite, no other transaction writes
		return t.LockLevels(skus)
	}
	wait := fmt.Sprintf("/*M!100101 SET STATEMENT max_statement_time=%f FOR */ SELECT /*+ MAX_EXECUTION_TIME(%d) */ ",
		within.Seconds(), within.Milliseconds())
	what := "*, " + t.store.clock + " AS read_at FROM skus FORCE INDEX (PRIMARY) WHERE name IN ? ORDER BY name FOR UPDATE"
	for try := 1; ; try++ {
		var rows []levelRow
		err := t.db.Raw(wait+what, skus).Scan(&rows).Error
		if kind := classify(err); (kind == interrupted || kind == lockWait) && t.db.Statement.Context.Err() == nil {
			rows = nil
			err = t.db.Raw("SELECT "+what+" SKIP LOCKED", skus).Scan(&rows).Error
			if err == nil && len(rows) == 0 && try < 3 {
				continue
			}
		}
		return toLevels(rows), failed(err, "lock levels of %q", skus)
	}
}

// Take implements order.Tx. Each mode is one UPDATE, in a function below.
func (t *tx) Take(mode stock.TakeMode, want stock.Take) error {
	if want.Units < 1 {
		return fmt.Errorf("%w: take %d units of sku %q", stock.ErrInvalid, want.Units, want.SKU)
	}
	take, known := map[stock.TakeMode]func(*gorm.DB, stock.Take) error{
		stock.Overwrite: overwrite, stock.Conditional: conditional, stock.Fenced: fenced, stock.Optimistic: optimistic,
	}[mode]
	if !known {
		return fmt.Errorf("%w: mode %q to take units of sku %q", stock.ErrInvalid, mode, want.SKU)
	}
	err := take(t.db, want)
	if errors.Is(err, order.ErrChanged) && mode != stock.Optimistic {
		err = refusal(t.db, want, mode)
	}
	return failed(err, "take units of sku %q", want.SKU)
}

// overwrite is WRONG, but common: check that there are enough units, subtract, save. The saved value comes from a read
// that may be out of date. If two buyers read 1, each saves 0: two orders, one unit. The transaction does not help, and
// neither does the CHECK constraint, because the value never falls below zero.
func overwrite(db *gorm.DB, t stock.Take) error {
	if t.Seen.Available < t.Units {
		return order.ErrSoldOut
	}
	return mustMatch(db, order.ErrUnknownSKU, "UPDATE skus SET available = ?, reserved = ? WHERE name = ?",
		t.Seen.Available-t.Units, t.Seen.Reserved+t.Units, t.SKU)
}

// conditional compares and subtracts in one statement. The database locks the row and uses its latest committed values,
// so that no two buyers subtract from the same level.
func conditional(db *gorm.DB, t stock.Take) error {
	return update(db, t, "UPDATE skus SET available = available - ?, reserved = reserved + ? WHERE name = ? AND available >= ?",
		t.Units, t.Units, t.SKU, t.Units)
}

// fenced is conditional with a further comparison: the row was not written under this fence or a higher one. So it
// refuses a paused holder whose lease has passed to another holder, whatever the state of the lock's store. See "How to
// do distributed locking", M. Kleppmann, 2016.
func fenced(db *gorm.DB, t stock.Take) error {
	return update(db, t, "UPDATE skus SET available = available - ?, reserved = reserved + ?, fence = ? "+
		"WHERE name = ? AND available >= ? AND fence < ?",
		t.Units, t.Units, t.Fence, t.SKU, t.Units, t.Fence)
}

// optimistic is overwrite with a compare-and-swap: it saves the new level if the row still has the level that was read.
// It compares the whole level. A version number would have to be raised by every writer of the row, including payments,
// cancellations, expiries and deliveries. A comparison of only the available units would miss a change from 5 to 4 and
// back to 5, and save an outdated number of reserved units.
func optimistic(db *gorm.DB, t stock.Take) error {
	if t.Seen.Available < t.Units {
		return order.ErrSoldOut
	}
	return update(db, t, "UPDATE skus SET available = ?, reserved = ? "+
		"WHERE name = ? AND supplied = ? AND available = ? AND reserved = ? AND sold = ?",
		t.Seen.Available-t.Units, t.Seen.Reserved+t.Units,
		t.SKU, t.Seen.Supplied, t.Seen.Available, t.Seen.Reserved, t.Seen.Sold)
}

// update runs a guarded statement, whose WHERE also compares the terms. If no row matches it, it returns ErrChanged.
func update(db *gorm.DB, t stock.Take, statement string, values ...any) error {
	if t.Terms != nil {
		statement += " AND price_minor = ? AND currency = ? AND limit_per_buyer = ?"
		values = append(values, t.Terms.Price.Minor, t.Terms.Price.Currency, t.Terms.LimitPerBuyer)
	}
	return mustMatch(db, order.ErrChanged, statement, values...)
}

// mustMatch runs a statement. If no row matches its WHERE, it returns noMatch.
func mustMatch(db *gorm.DB, noMatch error, statement string, values ...any) error {
	done := db.Exec(statement, values...)
	if done.Error == nil && done.RowsAffected == 0 {
		return noMatch
	}
	return done.Error
}

// refusal returns why the UPDATE of conditional or fenced matched no row.
//
// It reads FOR UPDATE, because another transaction may be changing the row, and a plain SELECT would not wait for it.
// (SQLite has no FOR UPDATE: the transaction is the only writer.)
//
// It checks the fence first, because a holder that has lost its lease must not answer anything about the stock. It
// checks the terms before the units, because after a change the caller has to plan again.
func refusal(db *gorm.DB, t stock.Take, mode stock.TakeMode) error {
	sku, err := readSKU(db.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}), t.SKU)
	switch {
	case err != nil:
		return err
	case mode == stock.Fenced && sku.Fence >= t.Fence:
		return order.ErrStaleFence
	case t.Terms != nil && sku.Terms() != *t.Terms:
		return order.ErrChanged
	}
	// Fences only grow, so units were missing. There may be enough by now: READ COMMITTED unlocks a row
	// that does not match.
	return order.ErrSoldOut
}

// Move implements order.Tx. As in conditional, the database compares and changes in one statement.
func (t *tx) Move(movements ...stock.Movement) error {
	if len(movements) == 0 {
		return nil
	}
	fences, changes := byName{}, map[string]byName{"supplied": {}, "available": {}, "reserved": {}, "sold": {}}
	for _, m := range movements {
		fences[m.SKU] = max(fences[m.SKU], m.Fence)
		changes["supplied"][m.SKU] += m.Supplied
		changes["available"][m.SKU] += m.Available
		changes["reserved"][m.SKU] += m.Reserved
		changes["sold"][m.SKU] += m.Sold
	}
	var set []string
	where, values := "name IN @names", map[string]any{"names": slices.Sorted(maps.Keys(fences))}
	for _, column := range slices.Sorted(maps.Keys(changes)) {
		if change, some := changes[column].expr("0"); some {
			set = append(set, fmt.Sprintf("%[1]s = %[1]s + @%[1]s", column))
			values[column] = change
		}
		if slices.Min(slices.Collect(maps.Values(changes[column]))) < 0 {
			where += fmt.Sprintf(" AND %[1]s + @%[1]s >= 0", column)
		}
	}
	if fence, some := fences.expr("NULL"); some {
		set = append(set, "fence = COALESCE(@fence, fence)")
		where += " AND fence < COALESCE(@fence, fence + 1)"
		values["fence"] = fence
	}
	done := t.db.Exec("UPDATE skus SET "+strings.Join(set, ", ")+" WHERE "+where, values)
	if done.Error != nil {
		return failed(done.Error, "move units of %d skus", len(fences))
	}
	if done.RowsAffected != int64(len(fences)) {
		return order.ErrChanged
	}
	return t.Record(movements...)
}

// byName has a number for each of several SKUs.
type byName map[string]int64

// expr returns the SQL expression of a row's number, with otherwise in place of 0, and reports whether
// any number is not 0.
func (n byName) expr(otherwise string) (number clause.Expr, some bool) {
	if len(n) == 1 {
		for _, only := range n {
			return gorm.Expr("?", only), only != 0
		}
	}
	number.SQL = "CASE name"
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if n[name] != 0 {
			number.SQL += " WHEN ? THEN ?"
			number.Vars = append(number.Vars, name, n[name])
		}
	}
	number.SQL += " ELSE " + otherwise + " END"
	return number, len(number.Vars) > 0
}

func (t *tx) Record(movements ...stock.Movement) error {
	if len(movements) == 0 {
		return nil
	}
	rows := order.Map(movements, func(m stock.Movement) movementRow {
		return movementRow{
			SKU: m.SKU, ID: m.ID, Kind: m.Kind, OrderID: sql.NullString{String: m.OrderID, Valid: m.OrderID != ""},
			Change: m.Level, Fence: m.Fence, CreatedAt: dbTime{m.At},
		}
	})
	return failed(t.db.Create(&rows).Error, "record %d movements", len(rows))
}

package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

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
	return failed(take(t.db, want), "take units of sku %q", want.SKU)
}

// overwrite is WRONG, and is how it is usually written: check whether there is enough, subtract, save. The saved value
// was computed from a read that may be out of date. If two buyers read 1, each saves 0: two orders, one unit. The
// transaction does not help, and neither does the CHECK constraint: the value never falls below zero.
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
	err := update(db, t, "UPDATE skus SET available = available - ?, reserved = reserved + ? WHERE name = ? AND available >= ?",
		t.Units, t.Units, t.SKU, t.Units)
	if errors.Is(err, order.ErrChanged) {
		return refusal(db, t, stock.Conditional)
	}
	return err
}

// fenced is conditional with a further comparison: the row was not written under this fence or a higher one. This refuses
// a paused holder whose lease has passed to another holder, whatever the state of the lock's store. See "How to do
// distributed locking", M. Kleppmann, 2016.
func fenced(db *gorm.DB, t stock.Take) error {
	err := update(db, t, "UPDATE skus SET available = available - ?, reserved = reserved + ?, fence = ? "+
		"WHERE name = ? AND available >= ? AND fence < ?",
		t.Units, t.Units, t.Fence, t.SKU, t.Units, t.Fence)
	if errors.Is(err, order.ErrChanged) {
		return refusal(db, t, stock.Fenced)
	}
	return err
}

// optimistic is overwrite with a compare-and-swap: it saves the new level if the row still has the level from which
// that was computed. It compares the whole level instead of a version number, which every writer of the row would have
// to raise: also payments, cancellations, expiries and deliveries. Comparing the available units alone would miss a
// change from 5 to 4 and back to 5, and save an outdated number of reserved units.
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

// TakeAll implements order.Tx: conditional and fenced for several rows, each with its own units and fence.
func (t *tx) TakeAll(takes ...stock.Take) error {
	var units, fences byName
	var names []any
	for _, take := range takes {
		if take.Units < 1 {
			return fmt.Errorf("%w: take %d units of sku %q", stock.ErrInvalid, take.Units, take.SKU)
		}
		units.add(take.SKU, take.Units)
		names = append(names, take.SKU)
		if take.Fence > 0 {
			fences.add(take.SKU, take.Fence)
		}
	}
	set, where := fmt.Sprintf("available = available - %s, reserved = reserved + %s", units.sql(), units.sql()), "name IN ? AND available >= "+units.sql()
	values := slices.Concat(units.values, units.values)
	if len(fences.values) > 0 {
		set += fmt.Sprintf(", fence = COALESCE(%s, fence)", fences.sql())
		where += fmt.Sprintf(" AND fence < COALESCE(%s, fence + 1)", fences.sql())
		values = append(values, fences.values...)
	}
	values = slices.Concat(values, []any{names}, units.values, fences.values)
	done := t.db.Exec("UPDATE skus SET "+set+" WHERE "+where, values...)
	if done.Error == nil && done.RowsAffected != int64(len(takes)) {
		return order.ErrChanged
	}
	return failed(done.Error, "take units of %d skus", len(takes))
}

// mustMatch runs a statement. If no row matches its WHERE, it returns noMatch.
func mustMatch(db *gorm.DB, noMatch error, statement string, values ...any) error {
	done := db.Exec(statement, values...)
	if done.Error == nil && done.RowsAffected == 0 {
		return noMatch
	}
	return done.Error
}

// refusal returns why an UPDATE matched no row.
//
// It reads FOR UPDATE: another transaction may be changing the row, and a plain SELECT would not wait for that. (There is
// no FOR UPDATE in SQLite, whose transaction is the only writer.)
//
// A stale fence is checked first: a holder that lost its lease must not answer anything about the stock. Changed terms
// are checked before sold out: the caller has to plan again by the new ones anyway.
func refusal(db *gorm.DB, t stock.Take, mode stock.TakeMode) error {
	var row skuRow
	err := db.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Where("name = ?", t.SKU).Take(&row).Error
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return order.ErrUnknownSKU
	case err != nil:
		return err
	case mode == stock.Fenced && row.Fence >= t.Fence:
		return order.ErrStaleFence
	case t.Terms != nil && row.sku().Terms() != *t.Terms:
		return order.ErrChanged
	}
	// Fences only grow, so the UPDATE failed for want of units. There may be enough by now: READ COMMITTED unlocks a
	// row that an UPDATE does not match.
	return order.ErrSoldOut
}

// SettleAll implements order.Tx. As in conditional, the database compares and changes in one statement, so that no unit is
// moved that is not reserved. It needs no fence: the orders' own rows decide whether their units may be moved.
func (t *tx) SettleAll(settles ...stock.Settle) error {
	if len(settles) == 0 {
		return nil
	}
	var sold, released byName
	var names []any
	for _, settle := range settles {
		if settle.Sold < 0 || settle.Released < 0 || settle.Sold+settle.Released < 1 {
			return fmt.Errorf("%w: %+v", stock.ErrInvalid, settle)
		}
		sold.add(settle.SKU, settle.Sold)
		released.add(settle.SKU, settle.Released)
		names = append(names, settle.SKU)
	}
	statement := fmt.Sprintf("UPDATE skus SET available = available + %s, reserved = reserved - %s - %s, sold = sold + %s "+
		"WHERE name IN ? AND reserved >= %s + %s", released.sql(), sold.sql(), released.sql(), sold.sql(), sold.sql(), released.sql())
	values := slices.Concat(released.values, sold.values, released.values, sold.values, []any{names}, sold.values, released.values)
	done := t.db.Exec(statement, values...)
	if done.Error == nil && done.RowsAffected != int64(len(settles)) {
		return order.ErrNotReserved
	}
	return failed(done.Error, "settle units of %d skus", len(settles))
}

// byName is a number for each of several SKUs.
type byName struct{ values []any }

func (n *byName) add(sku string, number int64) { n.values = append(n.values, sku, number) }

// sql returns the expression of the number of a row's SKU.
func (n *byName) sql() string {
	return "CASE name" + strings.Repeat(" WHEN ? THEN ?", len(n.values)/2) + " END"
}

package orderstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// Audit compares levels, ledger, orders and idempotency keys of one SKU, or of
// all for an empty name, as they are at one moment; buyers are not held up. It
// hands each SKU's account to account, in the order of names, and every broken
// invariant to difference. Their errors end the audit and come back as they
// are. A name that no SKU has is stock.ErrUnknownSKU, also where the database takes
// it for another; a database that does not answer is order.ErrBusy.
//
// The audit of one SKU looks at the orders that have a line of it; what belongs
// to no SKU at all, such as an order without lines, is found by the audit of all.
func (s *Store) Audit(ctx context.Context, sku string, account func(stock.Account) error, difference func(stock.Difference) error) error {
	if sku != "" && !stock.ValidName(sku) { // to MySQL a blank is as good as nothing
		return fmt.Errorf("sku %.80q: %w", sku, stock.ErrUnknownSKU)
	}
	// MySQL: one snapshot for all statements. SQLite: a transaction that does not
	// ask for the right to write; in WAL mode its reads are a snapshot too.
	tx := s.db.WithContext(ctx).Begin(&sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if tx.Error != nil {
		return readError(tx.Error, "what to audit")
	}
	defer tx.Rollback() // nothing was written

	if err := accounts(tx, sku, func(a stock.Account) error {
		if err := account(a); err != nil {
			return err
		}
		for _, found := range a.Check() {
			if err := difference(found); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for _, c := range slices.Concat(checks(), lifeChecks()) {
		if err := c.run(tx, sku, difference); err != nil {
			return err
		}
	}
	return nil
}

// accounts reads what is known of the units of each SKU. Pending orders hold
// their units, paid ones have bought them; the others gave them back.
//
// The orders' lines are grouped by an expression, so that SQLite reads them as
// they lie, next to their orders, and sorts, rather than by the index of SKUs: a
// fifth of the time with a million orders.
func accounts(tx *gorm.DB, sku string, account func(stock.Account) error) error {
	const query = `
		SELECT s.name, s.supplied, s.available, s.reserved, s.sold,
		       COALESCE(m.supplied, 0), COALESCE(m.available, 0), COALESCE(m.reserved, 0), COALESCE(m.sold, 0),
		       COALESCE(p.units, 0), COALESCE(p.open_units, 0), COALESCE(p.paid_units, 0), COALESCE(p.orders, 0),
		       s.fence, COALESCE(m.fence, 0)
		FROM skus AS s
		LEFT JOIN (
			SELECT sku, SUM(supplied) AS supplied, SUM(available) AS available, SUM(reserved) AS reserved, SUM(sold) AS sold,
			       MAX(fence) AS fence
			FROM movements
			WHERE (@sku = '' OR sku = @sku)
			GROUP BY sku
		) AS m ON m.sku = s.name
		LEFT JOIN (
			SELECT COALESCE(l.sku, l.sku) AS name, COUNT(*) AS orders,
			       SUM(CASE WHEN o.status IN ('pending', 'paid') THEN l.units ELSE 0 END) AS units,
			       SUM(CASE WHEN o.status = 'pending' THEN l.units ELSE 0 END) AS open_units,
			       SUM(CASE WHEN o.status = 'paid' THEN l.units ELSE 0 END) AS paid_units
			FROM order_lines AS l
			JOIN orders AS o ON o.id = l.order_id
			WHERE (@sku = '' OR l.sku = @sku)
			GROUP BY name
		) AS p ON p.name = s.name
		WHERE (@sku = '' OR s.name = @sku)
		ORDER BY s.name`
	found := false
	err := each(tx, query, sku, func(rows *sql.Rows) error {
		found = true
		var a stock.Account
		if err := rows.Scan(&a.SKU, &a.Level.Supplied, &a.Level.Available, &a.Level.Reserved, &a.Level.Sold,
			&a.Ledger.Supplied, &a.Ledger.Available, &a.Ledger.Reserved, &a.Ledger.Sold,
			&a.OrderedUnits, &a.OpenUnits, &a.PaidUnits, &a.Orders, &a.Fence, &a.LedgerFence); err != nil {
			return readError(err, "accounts of SKUs")
		}
		return account(a)
	})
	if err == nil && !found && sku != "" {
		return fmt.Errorf("sku %.80q: %w", sku, stock.ErrUnknownSKU)
	}
	return err
}

// each calls f for each row of a query, without holding more than one of them.
func each(tx *gorm.DB, query, sku string, f func(*sql.Rows) error) error {
	rows, err := tx.Raw(query, sql.Named("sku", sku)).Rows()
	if err != nil {
		return readError(err, "what to audit")
	}
	defer rows.Close() // what it could say, rows.Err says
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return readError(err, "what to audit")
	}
	return nil
}

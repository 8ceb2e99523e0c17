package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Audit compares levels, ledger, orders, deliveries, idempotency keys and the counts of limits, as of one moment, for
// one SKU or, if the name is empty, for all. Buyers do not wait for it. It calls account for each SKU, in the order of
// names, and difference for each broken invariant. An error of either ends the audit and is returned as it is. A SKU
// that does not exist is order.ErrUnknownSKU. Memory does not grow with the number of orders.
//
// The audit of one SKU covers the orders that have a line of the SKU. Rows that belong to no SKU, such as an order without
// lines, are found only by the audit of all SKUs.
//
// Two invariants cannot be checked in full. I3, that every acknowledged order exists, needs the buyers' own records.
// For I4, that fences strictly increase, the audit checks that the level was last written under the highest fence of
// its movements, and that all reservations under one fence are from the same moment, which is true of one transaction.
// It does not check that the times of movements rise with their fences, because clocks may step.
func (s *Store) Audit(ctx context.Context, sku string, account func(stock.Account) error, difference func(stock.Difference) error) error {
	if sku != "" && !stock.ValidName(sku) { // to MySQL, a name of spaces equals the empty name
		return fmt.Errorf("sku %.80q: %w", sku, order.ErrUnknownSKU)
	}
	seen := s.changes()
	// In MySQL, all statements read one snapshot. In SQLite, a read transaction in WAL mode is also a snapshot.
	db := s.db.WithContext(ctx).Begin(&sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if db.Error != nil {
		return explain(ctx, "audit", db.Error)
	}
	defer db.Rollback() // nothing was written
	a := audit{ctx, db, sku}
	if err := a.accounts(account, difference); err != nil {
		return s.confirm(ctx, seen, err) // confirms that there is no such SKU
	}
	for _, c := range checks {
		if err := a.check(c, difference); err != nil {
			return err
		}
	}
	return nil
}

type audit struct {
	ctx context.Context //nolint:containedctx // of one call
	db  *gorm.DB
	sku string // empty for all SKUs
}

// each calls f for each row of a query. It holds one row at a time.
func (a audit) each(query string, f func(*sql.Rows) error) error {
	rows, err := a.db.Raw(query, sql.Named("sku", a.sku)).Rows()
	if err != nil {
		return explain(a.ctx, "audit", err)
	}
	defer rows.Close() // rows.Err returns its error
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return explain(a.ctx, "audit", rows.Err())
}

// accounts reads the account of each SKU. Pending and paid orders hold units; the other orders have released theirs.
//
// The query groups the lines of orders by an expression, so that SQLite scans the table and sorts. By the index of SKUs, a
// million orders would take SQLite five times as long.
func (a audit) accounts(account func(stock.Account) error, difference func(stock.Difference) error) error {
	const query = `
		SELECT s.name, s.supplied, s.available, s.reserved, s.sold,
		       COALESCE(m.supplied, 0), COALESCE(m.available, 0), COALESCE(m.reserved, 0), COALESCE(m.sold, 0),
		       COALESCE(p.open_units, 0), COALESCE(p.paid_units, 0), COALESCE(p.orders, 0),
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
	err := a.each(query, func(rows *sql.Rows) error {
		found = true
		var acc stock.Account
		if err := rows.Scan(&acc.SKU, &acc.Supplied, &acc.Available, &acc.Reserved, &acc.Sold,
			&acc.Ledger.Supplied, &acc.Ledger.Available, &acc.Ledger.Reserved, &acc.Ledger.Sold,
			&acc.OpenUnits, &acc.PaidUnits, &acc.Orders, &acc.Fence, &acc.LedgerFence); err != nil {
			return explain(a.ctx, "audit accounts", err)
		}
		acc.OrderedUnits = acc.OpenUnits + acc.PaidUnits
		if err := account(acc); err != nil {
			return err
		}
		for _, d := range acc.Check() {
			if err := difference(d); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && !found && a.sku != "" {
		return fmt.Errorf("sku %.80q: %w", a.sku, order.ErrUnknownSKU)
	}
	return err
}

// check runs one check of the table and reports the differences.
func (a audit) check(c check, difference func(stock.Difference) error) error {
	columns := make([]sql.NullString, 2+strings.Count(c.detail, "%s"))
	var into []any
	for i := range columns {
		into = append(into, &columns[i])
	}
	return a.each(c.query, func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return explain(a.ctx, "audit "+string(c.invariant), err)
		}
		var mentioned []any
		for _, column := range columns[2:] {
			mentioned = append(mentioned, column.String)
		}
		return difference(stock.Difference{
			Invariant: c.invariant, SKU: columns[0].String, OrderID: columns[1].String, Detail: fmt.Sprintf(c.detail, mentioned...),
		})
	})
}

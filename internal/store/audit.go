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

// Audit compares levels, ledger, orders, deliveries, idempotency keys and the counts of limits, for one SKU or, if the
// name is empty, for all. Buyers do not wait for it. It calls account for each SKU, in the order of names, and
// difference for each broken invariant. An error of either ends the audit and is returned as it is. A SKU that does not
// exist is order.ErrUnknownSKU. Memory does not grow with the number of orders.
//
// The audit reads in steps. Each step is one statement, which compares rows of one moment, so that a change of the
// schema waits for one step at most. A step reads about 10,000 rows of a table, with the rows that belong to them. All
// movements of a SKU are in one step, and so are all keys of a buyer.
//
// The audit of one SKU covers the orders that have a line of the SKU. Rows that belong to no SKU, such as an order
// without lines, are found only by the audit of all SKUs.
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
	a := audit{ctx, s.db.WithContext(ctx), sku, sku != "" || s.sqlite, map[string][]string{}}
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
	ctx    context.Context //nolint:containedctx // of one call
	db     *gorm.DB
	sku    string              // empty for all SKUs
	whole  bool                // one range has all values
	begins map[string][]string // by column, where its ranges begin
}

// each calls f for each row that a query finds, range by range of a column such as orders.id.
func (a audit) each(by, query string, f func(*sql.Rows) error) error {
	if a.sku != "" && strings.HasSuffix(by, ".sku") {
		return a.step(query, a.sku, a.sku+"\x00", f)
	}
	begins, err := a.split(by)
	for i := 0; i < len(begins) && err == nil; i++ {
		until := "\U0010FFFF" // sorts after every other text
		if i+1 < len(begins) {
			until = begins[i+1]
		}
		err = a.step(query, begins[i], until, f)
	}
	return err
}

// split returns where the ranges of a column begin. It adds ranges for the rows that are new since the
// last call. A range has 10,000 rows, and all others with the value of the last row: the text after a
// text is the same with a zero byte.
func (a audit) split(by string) ([]string, error) {
	table, column, _ := strings.Cut(by, ".")
	query := fmt.Sprintf("SELECT %[2]s FROM %[1]s WHERE %[2]s >= ? ORDER BY %[2]s LIMIT 1 OFFSET 9999", table, column)
	begins := a.begins[by]
	if len(begins) == 0 {
		begins = []string{""}
	}
	for !a.whole {
		var end []string
		if err := a.db.Raw(query, begins[len(begins)-1]).Scan(&end).Error; err != nil {
			return nil, explain(a.ctx, "audit", err)
		}
		if len(end) == 0 {
			break
		}
		begins = append(begins, end[0]+"\x00")
	}
	a.begins[by] = begins
	return begins, nil
}

// step calls f for each row of one range. It holds one row at a time.
func (a audit) step(query, from, until string, f func(*sql.Rows) error) error {
	rows, err := a.db.Raw(query, sql.Named("sku", a.sku), sql.Named("from", from), sql.Named("until", until)).Rows()
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
			WHERE +sku >= @from AND +sku < @until
			GROUP BY sku
		) AS m ON m.sku = s.name
		LEFT JOIN (
			-- Grouped by an expression, or SQLite would read the lines by SKU: a million orders would take five times as long.
			SELECT COALESCE(l.sku, l.sku) AS name, COUNT(*) AS orders,
			       SUM(CASE WHEN o.status = 'pending' THEN l.units ELSE 0 END) AS open_units,
			       SUM(CASE WHEN o.status = 'paid' THEN l.units ELSE 0 END) AS paid_units
			FROM order_lines AS l
			JOIN orders AS o ON o.id = l.order_id
			WHERE +l.sku >= @from AND +l.sku < @until
			GROUP BY name
		) AS p ON p.name = s.name
		WHERE +s.name >= @from AND +s.name < @until
		ORDER BY s.name`
	found := false
	err := a.each("movements.sku", query, func(rows *sql.Rows) error {
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
	return a.each(c.by, c.query, func(rows *sql.Rows) error {
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

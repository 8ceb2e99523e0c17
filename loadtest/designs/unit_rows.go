package designs

import (
	"context"
	"database/sql"
	"errors"
)

// byUnit makes each unit a row. A buyer locks a row that no other buyer has locked, by SKIP LOCKED, and deletes it,
// so that buyers of one SKU wait for nobody. A pool of 1,000 rows for each SKU is filled up from the count in the
// SKU's row, so that a million units need no million rows. The primary key (sku, unit) and READ COMMITTED keep InnoDB
// from locking the gaps between rows. Shopify described it in 2026.
//
// The cost: three statements for each unit instead of one, and the rows that were deleted just now, which the next
// buyer reads over until the purge has removed them. The end of the pool is the difficult part: rows that SKIP LOCKED
// does not show are not sold yet, since their transactions may roll back.
func byUnit(naive bool) Design {
	d := Design{
		Name:    "unit-rows",
		About:   "A row for each unit, taken by SKIP LOCKED; when it shows none, the buyer waits for those that are locked.",
		Source:  "as Shopify described it in 2026",
		Wrong:   naive,
		Carts:   true,
		Prepare: fillPools,
		Open: func(_ context.Context, on Servers) (Seller, error) {
			return Seller{unitRows{on.DB, naive}.buy, func() error { return nil }}, nil
		},
	}
	if naive {
		d.Name += "-naive"
		d.About = "A row for each unit, taken by SKIP LOCKED; when it shows none, the SKU is sold out."
		d.Source = "a first reading of what Shopify described in 2026"
	}
	return d
}

const poolSize = 1000 // rows

func fillPools(ctx context.Context, on Servers, units map[string]int64) error {
	if _, err := on.DB.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS design_units (
		sku VARCHAR(64) NOT NULL, unit BIGINT NOT NULL, PRIMARY KEY (sku, unit))`); err != nil {
		return err
	}
	for sku := range units {
		if err := fillPool(ctx, on.DB, sku); err != nil {
			return err
		}
	}
	return nil
}

// fillPool fills the pool of a SKU up to its size. It locks the SKU's row, or many buyers would fill the pool at the
// same time. Rows that other buyers have locked, or deleted without a COMMIT yet, count as part of the pool.
func fillPool(ctx context.Context, db *sql.DB, sku string) error {
	return inTx(ctx, db, func(tx *sql.Tx) error {
		var left, moved, pooled int64
		err := tx.QueryRowContext(ctx, "SELECT available, supplied - available FROM skus WHERE name = ? FOR UPDATE", sku).
			Scan(&left, &moved)
		if err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM design_units WHERE sku = ?", sku).Scan(&pooled)
		n := min(poolSize-pooled, left)
		if err != nil || n <= 0 {
			return err
		}
		var values []any
		for i := range n {
			values = append(values, sku, moved+i) // a number that no unit has had
		}
		if _, err := tx.ExecContext(ctx, rows("INSERT INTO design_units", int(n), "(?, ?)"), values...); err != nil {
			return err
		}
		return takeUnits(ctx, tx, sku, n)
	})
}

type unitRows struct {
	db    *sql.DB
	naive bool
}

func (s unitRows) buy(ctx context.Context, o Order) (bool, error) {
	for lock := "FOR UPDATE SKIP LOCKED"; ; {
		missing, err := s.take(ctx, o, lock)
		if err != nil || missing == "" {
			return err == nil, err
		}
		// One statement, and so one snapshot: units that are neither here nor there are sold for good.
		var left, pooled int64
		err = s.db.QueryRowContext(ctx, `SELECT available, (SELECT COUNT(*) FROM design_units WHERE sku = ?)
			FROM skus WHERE name = ?`, missing, missing).Scan(&left, &pooled)
		switch {
		case err != nil:
			return false, err
		case left > 0:
			if err := fillPool(ctx, s.db, missing); err != nil {
				return false, err
			}
			lock = "FOR UPDATE SKIP LOCKED"
		case s.naive || pooled == 0:
			return false, nil
		default:
			lock = "FOR UPDATE" // waits until the others commit, or roll back and leave their units to this buyer
		}
	}
}

// take sells the order, or returns the SKU of which it found no unit.
func (s unitRows) take(ctx context.Context, o Order, lock string) (missing string, err error) {
	err = inTx(ctx, s.db, func(tx *sql.Tx) error {
		for _, sku := range o.SKUs {
			var unit int64
			err := tx.QueryRowContext(ctx, "SELECT unit FROM design_units WHERE sku = ? LIMIT 1 "+lock, sku).Scan(&unit)
			if errors.Is(err, sql.ErrNoRows) {
				missing = sku
				return errSoldOut
			}
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "DELETE FROM design_units WHERE sku = ? AND unit = ?", sku, unit); err != nil {
				return err
			}
		}
		_, err := insertOrders(ctx, tx, "INSERT", o)
		return err
	})
	if errors.Is(err, errSoldOut) {
		return missing, nil
	}
	return "", err
}

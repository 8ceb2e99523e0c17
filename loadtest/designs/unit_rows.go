package designs

import (
	"context"
	"database/sql"
	"errors"
)

// byUnit makes each unit a row, as Shopify described it in 2026. A buyer locks a row that no other buyer has locked, by
// SKIP LOCKED, and deletes it, so that buyers of one SKU do not wait for each other. The SKU's row fills up a pool of
// 1,000 rows. The primary key (sku, unit) and READ COMMITTED keep InnoDB from locking the gaps between rows.
//
// The cost: three statements for each unit instead of one. Rows that SKIP LOCKED does not show are not sold yet, since
// their transactions may roll back: the naive design takes them for sold.
func byUnit(naive bool) Design {
	d := Design{
		Name:    "unit-rows",
		About:   "A row for each unit, taken by SKIP LOCKED; when it shows none, the buyer waits for those that are locked.",
		Wrong:   naive,
		Carts:   true,
		Prepare: fillPools,
		Open: func(_ context.Context, on Servers) Seller {
			return inDatabase(func(ctx context.Context, o Order) error { return sellUnits(ctx, on.DB, o, naive) })
		},
	}
	if naive {
		d.Name += "-naive"
		d.About = "A row for each unit, taken by SKIP LOCKED; when it shows none, the SKU is sold out."
	}
	return d
}

func sellUnits(ctx context.Context, db *sql.DB, o Order, naive bool) error {
	for lock := "FOR UPDATE SKIP LOCKED"; ; {
		var missing string
		err := inTx(ctx, db, func(tx *sql.Tx) (err error) {
			if missing, err = deleteUnits(ctx, tx, o.SKUs, lock); err != nil {
				return err
			}
			return insertOrders(ctx, tx, o)
		})
		if !errors.Is(err, errSoldOut) {
			return err
		}
		// One statement, and so one snapshot: units that are neither here nor there are sold for good.
		var left, pooled int64
		err = db.QueryRowContext(ctx, `SELECT available, (SELECT COUNT(*) FROM design_units WHERE sku = ?)
			FROM skus WHERE name = ?`, missing, missing).Scan(&left, &pooled)
		switch {
		case err != nil:
			return err
		case left > 0:
			if err := fillPool(ctx, db, missing); err != nil {
				return err
			}
			lock = "FOR UPDATE SKIP LOCKED"
		case naive || pooled == 0:
			return errSoldOut
		default:
			lock = "FOR UPDATE" // waits until the others commit, or roll back and leave their units to this buyer
		}
	}
}

// deleteUnits takes a unit of each SKU, or returns errSoldOut and the SKU of which it found none.
func deleteUnits(ctx context.Context, tx *sql.Tx, skus []string, lock string) (missing string, err error) {
	for _, sku := range skus {
		var unit int64
		err := tx.QueryRowContext(ctx, "SELECT unit FROM design_units WHERE sku = ? LIMIT 1 "+lock, sku).Scan(&unit)
		if errors.Is(err, sql.ErrNoRows) {
			return sku, errSoldOut
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM design_units WHERE sku = ? AND unit = ?", sku, unit)
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

func fillPools(ctx context.Context, on Servers, units map[string]int64) error {
	_, err := on.DB.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS design_units (
		sku VARCHAR(64) NOT NULL, unit BIGINT NOT NULL, PRIMARY KEY (sku, unit))`)
	for sku := range units {
		if err == nil {
			err = fillPool(ctx, on.DB, sku)
		}
	}
	return err
}

const poolSize = 1000 // rows

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
		return takeUnits(ctx, tx, n, sku)
	})
}

package designs

import (
	"context"
	"database/sql"
	"math/rand/v2"
)

// inBuckets splits the stock of a SKU into 16 rows. A buyer takes from a random one, so that 16 buyers of one SKU
// write at the same time. Articles on hot rows describe it ("bucketed", "sharded" or "segmented" stock).
//
// The cost: a buyer whose bucket is empty is told that the SKU is sold out, while units lie in the other buckets.
func inBuckets() Design {
	return Design{
		Name:    "buckets",
		About:   "The stock is split into 16 rows; a buyer asks a random one, and no other.",
		Wrong:   true,
		Carts:   true,
		Prepare: fillBuckets,
		Sell: func(ctx context.Context, tx *sql.Tx, o Order) error {
			for _, sku := range o.SKUs {
				if err := mustMatch(tx.ExecContext(ctx, `UPDATE design_buckets SET available = available - 1
					WHERE sku = ? AND bucket = ? AND available >= 1`, sku, rand.IntN(bucketsOfSKU))); err != nil {
					return err
				}
			}
			return insertOrders(ctx, tx, o)
		},
	}
}

const bucketsOfSKU = 16

// fillBuckets moves all units of the SKUs into buckets. In the SKU's row they are reserved.
func fillBuckets(ctx context.Context, on Servers, units map[string]int64) error {
	if _, err := on.DB.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS design_buckets (
		sku VARCHAR(64) NOT NULL, bucket INT NOT NULL, available BIGINT NOT NULL, PRIMARY KEY (sku, bucket))`); err != nil {
		return err
	}
	return inTx(ctx, on.DB, func(tx *sql.Tx) error {
		var values []any
		for sku, n := range units {
			if err := takeUnits(ctx, tx, n, sku); err != nil {
				return err
			}
			for i := range int64(bucketsOfSKU) {
				values = append(values, sku, i, (n+i)/bucketsOfSKU) // these add up to n
			}
		}
		_, err := tx.ExecContext(ctx, rows("INSERT INTO design_buckets", len(values)/3, "(?, ?, ?)"), values...)
		return err
	})
}

package designs

import (
	"context"
	"database/sql"
)

// rowFirst keeps the count in the SKU's row, and one UPDATE compares and subtracts.
//
// The cost: an order that has updated the row holds its lock until COMMIT, so the orders of one SKU come one after
// the other, and the lock is held over the INSERTs and the COMMIT.
func rowFirst() Design {
	return Design{
		Name:   "row-first",
		About:  "A conditional UPDATE of the SKU's row, then the INSERTs of the order.",
		Source: "as textbooks and articles on overselling describe it",
		Carts:  true,
		Sell: func(ctx context.Context, tx *sql.Tx, o Order) error {
			for _, sku := range o.SKUs {
				if err := takeUnits(ctx, tx, sku, 1); err != nil {
					return err
				}
			}
			_, err := insertOrders(ctx, tx, "INSERT", o)
			return err
		},
	}
}

// rowLast is rowFirst with the UPDATE as the last statement, so that the lock is held over the COMMIT alone.
//
// The cost: an order that is refused has been written in vain.
func rowLast() Design {
	return Design{
		Name:   "row-last",
		About:  "The INSERTs of the order, then a conditional UPDATE of the SKU's row, just before COMMIT.",
		Source: "as articles on hot rows in MySQL describe it",
		Carts:  true,
		Sell: func(ctx context.Context, tx *sql.Tx, o Order) error {
			if _, err := insertOrders(ctx, tx, "INSERT", o); err != nil {
				return err
			}
			for _, sku := range o.SKUs {
				if err := takeUnits(ctx, tx, sku, 1); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

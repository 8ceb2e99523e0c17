package designs

import (
	"context"
	"database/sql"
)

// rowFirst keeps the count in the SKU's row, and one UPDATE compares and subtracts, as in textbooks.
//
// The cost: the row is locked over the INSERTs and the COMMIT, so the orders of one SKU come one after the other.
func rowFirst() Design {
	return Design{
		Name:  "row-first",
		About: "A conditional UPDATE of the SKU's row, then the INSERTs of the order.",
		Carts: true,
		Sell: func(ctx context.Context, tx *sql.Tx, o Order) error {
			if err := takeUnits(ctx, tx, 1, o.SKUs...); err != nil {
				return err
			}
			return insertOrders(ctx, tx, o)
		},
	}
}

// rowLast is rowFirst with the UPDATE as the last statement, so that the lock is held over the COMMIT alone, as
// articles on hot rows in MySQL describe it.
//
// The cost: an order that is refused has been written in vain.
func rowLast() Design {
	return Design{
		Name:  "row-last",
		About: "The INSERTs of the order, then a conditional UPDATE of the SKU's row, just before COMMIT.",
		Carts: true,
		Sell: func(ctx context.Context, tx *sql.Tx, o Order) error {
			if err := insertOrders(ctx, tx, o); err != nil {
				return err
			}
			return takeUnits(ctx, tx, 1, o.SKUs...)
		},
	}
}

package designs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// errSoldOut rolls back the transaction of an order for which a unit is missing.
var errSoldOut = errors.New("sold out")

// inTx commits what do has done, or rolls back and returns the error of do.
func inTx(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback() // its connection is gone if this fails, and the transaction with it
		return err
	}
	return tx.Commit()
}

// takeUnits moves units of a SKU from available to reserved, or returns errSoldOut.
func takeUnits(ctx context.Context, tx *sql.Tx, sku string, units int64) error {
	return mustMatch(tx.ExecContext(ctx, `UPDATE skus SET available = available - ?, reserved = reserved + ?
		WHERE name = ? AND available >= ?`, units, units, sku, units))
}

// mustMatch returns errSoldOut if a statement has matched no row.
func mustMatch(done sql.Result, err error) error {
	if err != nil {
		return err
	}
	if matched, err := done.RowsAffected(); err != nil || matched > 0 {
		return err
	}
	return errSoldOut
}

// insertOrders writes orders with their lines, as pending, by INSERT or INSERT IGNORE. It returns how many are new.
func insertOrders(ctx context.Context, tx *sql.Tx, insert string, orders ...Order) (fresh int64, err error) {
	var values, lines []any
	for _, o := range orders {
		values = append(values, o.ID, o.Buyer, o.ID, 100*len(o.SKUs))
		for i, sku := range o.SKUs {
			lines = append(lines, o.ID, sku, i+1)
		}
	}
	done, err := tx.ExecContext(ctx, rows(insert+` INTO orders
		(id, buyer, idempotency_key, total_minor, status, currency, created_at, expires_at)`, len(orders),
		"(?, ?, ?, ?, 'pending', 'EUR', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 15 MINUTE)"), values...)
	if err == nil {
		fresh, err = done.RowsAffected()
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, rows(insert+` INTO order_lines (order_id, sku, line_no, units, price_minor, currency)`,
			len(lines)/3, "(?, ?, ?, 1, 100, 'EUR')"), lines...)
	}
	return fresh, err
}

// rows is an INSERT of n rows.
func rows(insert string, n int, row string) string {
	return insert + " VALUES " + row + strings.Repeat(", "+row, n-1)
}

// desk is where buyers wait until another goroutine has decided their orders.
type desk struct{ waiting sync.Map } // from an order's ID to its buyer's chan verdict

type verdict struct {
	sold bool
	err  error
}

// patience is how long a buyer waits for an answer, which never comes if Redis has lost the order.
const patience = 5 * time.Second

// await hands an order in, and waits for its answer.
func (d *desk) await(ctx context.Context, o Order, handIn func() (accepted bool, err error)) (sold bool, err error) {
	answer := make(chan verdict, 1)
	d.waiting.Store(o.ID, answer)
	defer d.waiting.Delete(o.ID)
	if accepted, err := handIn(); err != nil || !accepted {
		return false, err
	}
	select {
	case v := <-answer:
		return v.sold, v.err
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-time.After(patience):
		return false, fmt.Errorf("order %s: no answer within %v; look for its row later", o.ID, patience)
	}
}

// answer answers the buyers of orders, if they still wait.
func (d *desk) answer(v verdict, orders ...Order) {
	for _, o := range orders {
		if answer, waits := d.waiting.LoadAndDelete(o.ID); waits {
			answer.(chan verdict) <- v //nolint:forcetypeassert // it has nothing else
		}
	}
}

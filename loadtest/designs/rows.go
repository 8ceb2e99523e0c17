package designs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// decided turns the end of an order's transaction into an answer to the buyer.
func decided(err error) (sold bool, _ error) {
	if errors.Is(err, errSoldOut) {
		return false, nil
	}
	return err == nil, err
}

// rowsOnly is what a Seller has that keeps everything in rows: nothing is to be closed.
type rowsOnly struct{ db *sql.DB }

// Close implements Seller.
func (rowsOnly) Close() error { return nil }

// putUpForSale writes new SKUs of this many units.
func putUpForSale(ctx context.Context, db *sql.DB, units map[string]int64) error {
	var values []any
	for sku, n := range units {
		values = append(values, sku, n, n)
	}
	_, err := db.ExecContext(ctx, rows(`INSERT INTO skus
		(name, supplied, available, reserved, sold, fence, price_minor, currency, created_at)`, len(units),
		"(?, ?, ?, 0, 0, 0, 100, 'EUR', UTC_TIMESTAMP(6))"), values...)
	return err
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

// insertOrders writes orders with their lines, as pending.
func insertOrders(ctx context.Context, tx *sql.Tx, orders ...Order) error {
	_, err := insertBy(ctx, tx, "INSERT", orders)
	return err
}

// insertBy writes orders with their lines by INSERT or INSERT IGNORE, and returns how many orders are new.
func insertBy(ctx context.Context, tx *sql.Tx, insert string, orders []Order) (fresh int64, err error) {
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

// counts returns how many of the orders want each SKU, and the SKUs sorted, which is the order in which rows are
// locked.
func counts(orders []Order) (units map[string]int64, sorted []string) {
	units = map[string]int64{}
	for _, o := range orders {
		for _, sku := range o.SKUs {
			units[sku]++
		}
	}
	return units, slices.Sorted(maps.Keys(units))
}

// desk is where buyers wait until another goroutine has decided their orders.
type desk struct {
	mu      sync.Mutex
	waiting map[string]chan verdict // by the order's ID
}

type verdict struct {
	sold bool
	err  error
}

// patience is how long a buyer waits for an answer, which never comes if Redis has lost the order.
const patience = 5 * time.Second

// await hands an order in, and waits for its answer.
func (d *desk) await(ctx context.Context, o Order, handIn func() (accepted bool, err error)) (sold bool, err error) {
	answer := make(chan verdict, 1)
	d.mu.Lock()
	if d.waiting == nil {
		d.waiting = map[string]chan verdict{}
	}
	d.waiting[o.ID] = answer
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.waiting, o.ID)
		d.mu.Unlock()
	}()
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

// answer answers the buyers of orders, those who still wait.
func (d *desk) answer(v verdict, orders ...Order) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range orders {
		if waiting := d.waiting[o.ID]; waiting != nil {
			waiting <- v
			delete(d.waiting, o.ID)
		}
	}
}

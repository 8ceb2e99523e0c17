package designs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// errSoldOut means that a unit is missing. It rolls back the transaction of the order.
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

// takeUnits moves n units of each SKU from available to reserved, or returns errSoldOut.
func takeUnits(ctx context.Context, tx *sql.Tx, n int64, skus ...string) error {
	for _, sku := range skus {
		if err := mustMatch(tx.ExecContext(ctx, `UPDATE skus SET available = available - ?, reserved = reserved + ?
			WHERE name = ? AND available >= ?`, n, n, sku, n)); err != nil {
			return err
		}
	}
	return nil
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
	var values, lines []any
	for _, o := range orders {
		values = append(values, o.ID, o.Buyer, o.ID, 100*len(o.SKUs))
		for i, sku := range o.SKUs {
			lines = append(lines, o.ID, sku, i+1)
		}
	}
	if _, err := tx.ExecContext(ctx, rows(`INSERT INTO orders
		(id, buyer, idempotency_key, total_minor, status, currency, created_at, expires_at)`, len(orders),
		"(?, ?, ?, ?, 'pending', 'EUR', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 15 MINUTE)"), values...); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, rows(`INSERT INTO order_lines (order_id, sku, line_no, units, price_minor, currency)`,
		len(lines)/3, "(?, ?, ?, 1, 100, 'EUR')"), lines...)
	return err
}

// rows is an INSERT of n rows.
func rows(insert string, n int, row string) string {
	return insert + " VALUES " + row + strings.Repeat(", "+row, n-1)
}

// readOrders reads orders that go-redis wrote.
func readOrders(texts []string) (orders []Order, err error) {
	orders = make([]Order, len(texts))
	for i, text := range texts {
		err = errors.Join(err, json.Unmarshal([]byte(text), &orders[i]))
	}
	return orders, err
}

// desk is where buyers wait while clerks decide their orders.
type desk struct {
	waiting sync.Map // from an order's ID to its buyer's chan error
	clerks  sync.WaitGroup
	closing atomic.Bool // clerks end when this is set
}

// patience is how long a buyer waits for an answer, which never comes if Redis has lost the order.
const patience = 5 * time.Second

// await hands an order in, and waits for its answer.
func (d *desk) await(ctx context.Context, o Order, handIn func() error) error {
	answer := make(chan error, 1)
	d.waiting.Store(o.ID, answer)
	defer d.waiting.Delete(o.ID)
	if err := handIn(); err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(patience):
		return fmt.Errorf("order %s: no answer within %v; look for its row later", o.ID, patience)
	}
}

// answer gives the buyers of orders what Buy returns, if they still wait.
func (d *desk) answer(outcome error, orders ...Order) {
	for _, o := range orders {
		if answer, waits := d.waiting.LoadAndDelete(o.ID); waits {
			answer.(chan error) <- outcome //nolint:forcetypeassert // it has nothing else
		}
	}
}

// close returns when the clerks have ended.
func (d *desk) close() error {
	d.closing.Store(true)
	d.clerks.Wait()
	return nil
}

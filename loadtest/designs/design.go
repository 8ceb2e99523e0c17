// Package designs has what others have built to sell a scarce thing to a crowd, each as the smallest honest program,
// under the same load, the same crash and the same verdict, beside the strategies of this shop.
//
// Each design is a file. design.go has what they share, sale.go the crowd, the faults and their verdicts, report.go
// what is measured and shown, and command.go `loadtest designs`. All designs write the shop's rows in skus, orders and
// order_lines, by a pool of 32 connections and with READ COMMITTED, as the shop does.
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

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/store"
)

// Design is one way to build a sale, as the smallest honest program: one file, no HTTP, the shop's own rows.
type Design struct {
	Name  string `json:"name"`
	About string `json:"about"`             // one sentence
	Wrong bool   `json:"known_to_be_wrong"` // it loses orders, oversells or undersells in one of the faults
	Carts bool   `json:"carts"`             // it can sell orders of several SKUs, all or none
	Redis bool   `json:"redis_decides"`     // who may buy

	// Prepare creates the tables and rows that the design needs in addition to the rows of new SKUs. Nil: there are none.
	Prepare func(ctx context.Context, on Servers, units map[string]int64) error `json:"-"`

	// Sell sells one order, as Seller.Buy does, in a design that needs one transaction for an order and nothing else.
	Sell func(ctx context.Context, tx *sql.Tx, o Order) error `json:"-"`

	// Open starts any other design: its goroutines, which outlive ctx.
	Open func(ctx context.Context, on Servers) Seller `json:"-"`
}

// Servers are what a design runs on. The database has the shop's schema.
type Servers struct {
	DSN, Address string // of the database and of Redis
	Store        *store.Store
	DB           *sql.DB // of the store
	Redis        redis.UniversalClient
}

// Seller is a running design.
type Seller struct {
	// Buy sells one unit of each SKU of the order, all or none. Nil acknowledges the order: from then on it must not be
	// lost. errSoldOut says that a SKU is sold out. Any other error decides nothing. Many goroutines call Buy at once.
	Buy func(ctx context.Context, o Order) error

	// Close writes the orders that are not written yet. No buyer may call Buy any more.
	Close func() error
}

// Order is the order of a buyer.
type Order struct {
	ID    string // a UUID; the idempotency key of the order's row in every design, also where the row has another id
	Buyer string
	SKUs  []string // sorted, each once
}

// MarshalBinary is how go-redis writes an order.
func (o Order) MarshalBinary() ([]byte, error) { return json.Marshal(o) }

// All returns the designs, this shop's own last.
func All() []Design {
	return []Design{
		byUnit(true), byUnit(false), inStream("early"), inStream("late"), inBuckets(), rowFirst(), rowLast(), queuePerSKU(),
		ours("lanes"), ours("batch"),
	}
}

// putUpForSale writes new SKUs of this many units, and prepares the design.
func (d Design) putUpForSale(ctx context.Context, on Servers, units map[string]int64) error {
	var values []any
	for sku, n := range units {
		values = append(values, sku, n, n)
	}
	_, err := on.DB.ExecContext(ctx, rows(`INSERT INTO skus
		(name, supplied, available, reserved, sold, fence, price_minor, currency, created_at)`, len(units),
		"(?, ?, ?, 0, 0, 0, 100, 'EUR', UTC_TIMESTAMP(6))"), values...)
	if err == nil && d.Prepare != nil {
		err = d.Prepare(ctx, on, units)
	}
	return err
}

// open starts the design.
func (d Design) open(ctx context.Context, on Servers) Seller {
	if d.Open != nil {
		return d.Open(ctx, on)
	}
	return inDatabase(func(ctx context.Context, o Order) error {
		return inTx(ctx, on.DB, func(tx *sql.Tx) error { return d.Sell(ctx, tx, o) })
	})
}

// inDatabase is a seller that keeps everything in the database.
func inDatabase(buy func(context.Context, Order) error) Seller {
	return Seller{Buy: buy, Close: func() error { return nil }}
}

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

// replies hands the answers of workers, which decide the orders, to the buyers that wait.
type replies struct {
	waiting sync.Map // from an order's ID to its buyer's chan error
	workers sync.WaitGroup
	closing atomic.Bool // workers end when this is set
	failed  error       // why a worker ended before everything was written
}

// patience is how long a buyer waits for an answer, which never comes if Redis has lost the order.
const patience = 5 * time.Second

// await hands an order in, and waits for its answer.
func (r *replies) await(ctx context.Context, o Order, handIn func() error) error {
	answer := make(chan error, 1)
	r.waiting.Store(o.ID, answer)
	defer r.waiting.Delete(o.ID)
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
func (r *replies) answer(outcome error, orders ...Order) {
	for _, o := range orders {
		if answer, waits := r.waiting.LoadAndDelete(o.ID); waits {
			answer.(chan error) <- outcome //nolint:forcetypeassert // it has nothing else
		}
	}
}

// close returns when the workers have ended.
func (r *replies) close() error {
	r.closing.Store(true)
	r.workers.Wait()
	return r.failed
}

package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/crowd"
)

const (
	floorBatch   = 256 // orders in one commit
	floorWriters = 2   // one inserts while the other commits
)

// floor writes the rows that orders of one unit leave, as fast as the database takes them from a program without HTTP
// and lock: the limit of this machine. The shop places one order first, by a strategy without fences. Its rows are the
// pattern of the others, so that the audit holds for them, too.
func (r *run) floor(ctx context.Context, f *fleet, sku string) (round, error) {
	answer, err := r.buyOne(ctx, f, "conditional", sku)
	if err != nil {
		return round{}, err
	}
	config := f.database.Clone()
	config.InterpolateParams = true // one round trip for each statement
	config.ParseTime = false        // rows are copied as text
	db, err := sql.Open("mysql", config.FormatDSN())
	if err != nil {
		return round{}, err
	}
	defer func() { _ = db.Close() }()
	var patterns []*pattern
	for _, p := range []*pattern{
		{table: "orders", key: "id"}, {table: "order_lines", key: "order_id"},
		{table: "idempotency_keys", key: "order_id"}, {table: "movements", key: "order_id"},
	} {
		if err := p.read(ctx, db, answer.Order.ID); err != nil {
			return round{}, fmt.Errorf("%s: %w", p.table, err)
		}
		patterns = append(patterns, p)
	}
	var group errgroup.Group
	var batches, inTime atomic.Int64
	began := time.Now()
	for range floorWriters {
		group.Go(func() error {
			for time.Since(began) < r.Time {
				if err := writeBatch(ctx, db, patterns, sku); err != nil {
					return err
				}
				batches.Add(1)
				if time.Since(began) < r.Time {
					inTime.Add(1)
				}
			}
			return nil
		})
	}
	err = group.Wait()
	rate := float64(floorBatch*inTime.Load()) / r.Time.Seconds()
	return round{Summary: crowd.Summary{
		Acknowledged: 1 + floorBatch*batches.Load(), OrdersPerSecond: rate, AnswersPerSecond: rate,
	}}, err
}

// pattern is the row of an order in one table, to be written again with other identities.
type pattern struct {
	table, key string // key: the column with the order's id
	columns    []string
	values     []sql.NullString
}

func (p *pattern) read(ctx context.Context, db *sql.DB, id string) error {
	rows, err := db.QueryContext(ctx, "SELECT * FROM "+p.table+" WHERE "+p.key+" = ?", id) //nolint:gosec // names of this file
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	if p.columns, err = rows.Columns(); err != nil {
		return err
	}
	p.values = make([]sql.NullString, len(p.columns))
	into := make([]any, len(p.columns))
	for i := range p.values {
		into[i] = &p.values[i]
	}
	if !rows.Next() {
		return errors.Join(errors.New("no row of the order"), rows.Err())
	}
	return rows.Scan(into...)
}

// insert writes a row for each of the orders.
func (p *pattern) insert(ctx context.Context, tx *sql.Tx, orders []string) error {
	row := ",(" + strings.Repeat(",?", len(p.columns))[1:] + ")"
	var args []any
	for _, order := range orders {
		for i, column := range p.columns {
			switch column {
			case p.key:
				args = append(args, order)
			case "buyer", "idempotency_key":
				args = append(args, "floor-"+order)
			case "id":
				args = append(args, uuid.Must(uuid.NewV7()).String())
			default:
				args = append(args, p.values[i])
			}
		}
	}
	insert := "INSERT INTO " + p.table + " (" + strings.Join(p.columns, ",") + ") VALUES " + strings.Repeat(row, len(orders))[1:] //nolint:gosec // names of this file and of the database
	_, err := tx.ExecContext(ctx, insert, args...)
	return err
}

// writeBatch commits a batch of orders. The row of the SKU comes last: it is locked until the commit.
func writeBatch(ctx context.Context, db *sql.DB, patterns []*pattern, sku string) error {
	orders := make([]string, floorBatch)
	for i := range orders {
		orders[i] = uuid.Must(uuid.NewV7()).String()
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, p := range patterns {
		if err := p.insert(ctx, tx, orders); err != nil {
			return err
		}
	}
	const take = "UPDATE skus SET available = available - ?, reserved = reserved + ? WHERE name = ? AND available >= ?"
	if _, err := tx.ExecContext(ctx, take, floorBatch, floorBatch, sku, floorBatch); err != nil {
		return err
	}
	return tx.Commit()
}

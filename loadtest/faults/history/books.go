package history

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"example.com/shop/loadtest/shopclient"
)

// Books are the rows that the shop has kept of a history's SKUs and buyers, read in one transaction.
type Books struct {
	Orders    map[string]Order   // by id
	Movements []Movement         // in the order of their ids
	Levels    map[string]Level   // by SKU
	Payments  map[string]Payment // of the orders, by the provider's id
}

// Order is an order and its lines.
type Order struct {
	Buyer, Key, Status string
	Units              map[string]int64 // by SKU
	Total              shopclient.Money
}

// Payment is a payment of an order. An empty Refusal: it pays the order.
type Payment struct {
	OrderID, Refusal string
	Amount           shopclient.Money
}

// Movement is a row of the stock ledger: what it adds to the counts of its SKU.
type Movement struct {
	ID, SKU, Kind, OrderID string
	Level
	Fence int64
}

// Level is how many units there are.
type Level struct{ Supplied, Available, Reserved, Sold int64 }

// Plus adds up.
func (l Level) Plus(m Level) Level {
	return Level{l.Supplied + m.Supplied, l.Available + m.Available, l.Reserved + m.Reserved, l.Sold + m.Sold}
}

// Read reads the books. A database that has just recovered has half a minute for it.
func (h *History) Read(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("read the books: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	h.Books = Books{Orders: map[string]Order{}, Levels: map[string]Level{}, Payments: map[string]Payment{}}
	var id, sku string
	var units int64
	var l Level
	var m Movement
	var o Order
	var p Payment
	for _, rows := range []struct {
		query string
		into  []any
		keep  func() // what was read into the variables
	}{{
		"SELECT name, supplied, available, reserved, sold FROM skus WHERE name LIKE ?",
		[]any{&sku, &l.Supplied, &l.Available, &l.Reserved, &l.Sold},
		func() { h.Levels[sku] = l },
	}, {
		"SELECT id, sku, kind, COALESCE(order_id, ''), supplied, available, reserved, sold, fence FROM movements WHERE sku LIKE ? ORDER BY id",
		[]any{&m.ID, &m.SKU, &m.Kind, &m.OrderID, &m.Supplied, &m.Available, &m.Reserved, &m.Sold, &m.Fence},
		func() { h.Movements = append(h.Movements, m) },
	}, {
		`SELECT o.id, o.buyer, o.idempotency_key, o.status, o.total_minor, o.currency, l.sku, l.units
			FROM orders AS o JOIN order_lines AS l ON l.order_id = o.id WHERE o.buyer LIKE ?`,
		[]any{&id, &o.Buyer, &o.Key, &o.Status, &o.Total.Minor, &o.Total.Currency, &sku, &units},
		func() {
			if o.Units = h.Orders[id].Units; o.Units == nil {
				o.Units = map[string]int64{}
			}
			o.Units[sku] += units
			h.Orders[id] = o
		},
	}, {
		`SELECT p.id, p.order_id, p.refusal, p.amount_minor, p.currency
			FROM payments AS p JOIN orders AS o ON o.id = p.order_id WHERE o.buyer LIKE ?`,
		[]any{&id, &p.OrderID, &p.Refusal, &p.Amount.Minor, &p.Amount.Currency},
		func() { h.Payments[id] = p },
	}} {
		if err := h.each(ctx, tx, rows.query, rows.into, rows.keep); err != nil {
			return fmt.Errorf("read the books: %w", err)
		}
	}
	return nil
}

// each keeps each row of a query about the SKUs or the buyers of the history.
func (h *History) each(ctx context.Context, tx *sql.Tx, query string, into []any, keep func()) error {
	r, err := tx.QueryContext(ctx, query, h.Name+"-%")
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	for r.Next() {
		if err := r.Scan(into...); err != nil {
			return err
		}
		keep()
	}
	return r.Err()
}

package history

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
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

// Millisecond is when its id was made, a UUID of version 7.
func (m Movement) Millisecond() string { return m.ID[:13] }

// Level is how many units there are.
type Level struct{ Supplied, Available, Reserved, Sold int64 }

// Plus adds up.
func (l Level) Plus(m Level) Level {
	return Level{l.Supplied + m.Supplied, l.Available + m.Available, l.Reserved + m.Reserved, l.Sold + m.Sold}
}

// readLimit is for a database that has just recovered.
const readLimit = 30 * time.Second

// AnyPending reports whether an order is neither paid nor cancelled nor expired.
func (b Books) AnyPending() bool {
	for _, o := range b.Orders {
		if o.Status == "pending" {
			return true
		}
	}
	return false
}

// Read reads the books.
func (h *History) Read(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("read the books: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	h.Books = Books{Orders: map[string]Order{}, Levels: map[string]Level{}, Payments: map[string]Payment{}}
	var skus, buyers []any
	for _, sku := range h.SKUs.All() {
		skus = append(skus, sku)
	}
	seen := map[string]bool{"": true}
	for _, o := range h.Operations {
		if !seen[o.Buyer] {
			buyers, seen[o.Buyer] = append(buyers, o.Buyer), true
		}
	}
	read := func(query string, list []any, scan func(*sql.Rows) error) {
		if err == nil {
			err = each(ctx, tx, query, list, scan)
		}
	}
	read("SELECT name, supplied, available, reserved, sold FROM skus WHERE name IN (?)", skus, func(r *sql.Rows) error {
		var name string
		var l Level
		err := r.Scan(&name, &l.Supplied, &l.Available, &l.Reserved, &l.Sold)
		h.Levels[name] = l
		return err
	})
	read("SELECT id, sku, kind, COALESCE(order_id, ''), supplied, available, reserved, sold, fence FROM movements WHERE sku IN (?) ORDER BY id", skus, func(r *sql.Rows) error {
		var m Movement
		err := r.Scan(&m.ID, &m.SKU, &m.Kind, &m.OrderID, &m.Supplied, &m.Available, &m.Reserved, &m.Sold, &m.Fence)
		h.Movements = append(h.Movements, m)
		return err
	})
	read("SELECT o.id, o.buyer, o.idempotency_key, o.status, o.total_minor, o.currency, l.sku, l.units FROM orders AS o JOIN order_lines AS l ON l.order_id = o.id WHERE o.buyer IN (?)", buyers, func(r *sql.Rows) error {
		var o Order
		var id, sku string
		var units int64
		err := r.Scan(&id, &o.Buyer, &o.Key, &o.Status, &o.Total.Minor, &o.Total.Currency, &sku, &units)
		if o.Units = h.Orders[id].Units; o.Units == nil {
			o.Units = map[string]int64{}
		}
		o.Units[sku] += units
		h.Orders[id] = o
		return err
	})
	read("SELECT p.id, p.order_id, p.refusal, p.amount_minor, p.currency FROM payments AS p JOIN orders AS o ON o.id = p.order_id WHERE o.buyer IN (?)", buyers, func(r *sql.Rows) error {
		var p Payment
		var id string
		err := r.Scan(&id, &p.OrderID, &p.Refusal, &p.Amount.Minor, &p.Amount.Currency)
		h.Payments[id] = p
		return err
	})
	return err
}

// each runs a query whose one placeholder stands for a list.
func each(ctx context.Context, tx *sql.Tx, query string, list []any, scan func(*sql.Rows) error) error {
	query = strings.Replace(query, "?", strings.TrimPrefix(strings.Repeat(",?", len(list)), ","), 1)
	r, err := tx.QueryContext(ctx, query, list...)
	if err != nil {
		return fmt.Errorf("read the books: %w", err)
	}
	defer func() { _ = r.Close() }()
	for r.Next() {
		if err := scan(r); err != nil {
			return fmt.Errorf("read the books: %w", err)
		}
	}
	return r.Err()
}

// Package designs has what others have built to sell a scarce thing to a crowd, each as the smallest honest program,
// under the same load, the same crash and the same verdict, beside the strategies of this shop.
//
// Each design is a file. rows.go has the statements that they share, load.go the crowd, sale.go the sales with a fault,
// verdict.go what is wrong with their orders, report.go what is shown, and command.go `loadtest designs`. All designs
// write the rows of the shop: skus, orders and order_lines, by one database/sql pool with the shop's 32 connections and
// its isolation, READ COMMITTED. They write less than the strategies of the shop, which also keep the ledger and the
// idempotency keys of buyers.
package designs

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/redis/go-redis/v9"
)

// Design is one way to build a sale, as the smallest honest program: one file, no HTTP, the shop's own rows.
type Design struct {
	Name   string `json:"name"`
	About  string `json:"about"`             // one sentence
	Source string `json:"source"`            // who published it, and where
	Wrong  bool   `json:"known_to_be_wrong"` // it loses orders, oversells or undersells in one of the faults
	Carts  bool   `json:"carts"`             // it can sell orders of several SKUs, all or none
	Redis  bool   `json:"redis_decides"`     // who may buy

	// Prepare makes what the design needs beside the shop's tables, whose SKUs exist: rows of units, counts, buckets.
	// It may be called again for further SKUs. Nil: nothing.
	Prepare func(ctx context.Context, on Servers, units map[string]int64) error `json:"-"`

	// Sell sells one order, as Seller.Buy does, in a design that keeps everything in the database.
	Sell func(ctx context.Context, db *sql.DB, o Order) error `json:"-"`

	// Open starts any other design: its connections and goroutines, and what it does after a crash before it sells.
	Open func(ctx context.Context, on Servers) (Seller, error) `json:"-"`
}

// Servers are what a design runs on. The database has the shop's schema.
type Servers struct {
	DSN, Address string // of the database and of Redis
	DB           *sql.DB
	Redis        redis.UniversalClient
}

// Seller is a running design.
type Seller struct {
	// Buy sells one unit of each SKU of the order, all or none. Nil acknowledges the order to its buyer: from then on it
	// must not be lost. errSoldOut says that a SKU is sold out. Any other error decides nothing. Many goroutines may call
	// Buy at once.
	Buy func(ctx context.Context, o Order) error

	// Close writes what is still to be written. No buyer may call Buy any more.
	Close func() error
}

// Order is what a buyer asks for.
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
func (d Design) open(ctx context.Context, on Servers) (Seller, error) {
	if d.Open != nil {
		return d.Open(ctx, on)
	}
	buy := func(ctx context.Context, o Order) error { return d.Sell(ctx, on.DB, o) }
	return Seller{Buy: buy, Close: func() error { return nil }}, nil
}

package designs

import (
	"context"
	"database/sql"
	"io"

	"github.com/redis/go-redis/v9"
)

// Design is one way to build a sale, as the smallest honest program: one file, no HTTP, the shop's own rows.
type Design struct {
	Name   string
	About  string // one sentence
	Source string // who published it, and where
	Wrong  bool   // it is known to lose orders, to oversell or to undersell in one of the faults
	Carts  bool   // it can sell orders of several SKUs, all or none
	Redis  bool   // Redis decides who may buy

	// Prepare makes what the design needs beside the shop's tables, whose SKUs exist: rows of units, counts, buckets.
	// It may be called again for further SKUs.
	Prepare func(ctx context.Context, on Servers, units map[string]int64) error

	// Open starts the program: its connections and goroutines, and what it does after a crash before it sells.
	Open func(ctx context.Context, on Servers) (Seller, error)
}

// Servers are what a design runs on. The database has the shop's schema.
type Servers struct {
	DSN   string // of the database
	DB    *sql.DB
	Redis redis.UniversalClient
}

// Seller is a running design. Buy may be called by many goroutines at once.
type Seller interface {
	// Buy sells one unit of each SKU of the order, all or none. True acknowledges the order to its buyer: from then
	// on it must not be lost. False without an error says that the SKU is sold out. An error decides nothing.
	Buy(ctx context.Context, o Order) (sold bool, err error)

	// Close writes what is still to be written. No buyer may call Buy any more.
	io.Closer
}

// Order is what a buyer asks for.
type Order struct {
	ID    string // a UUID; the idempotency key of the order's row in every design, also where the row has another id
	Buyer string
	SKUs  []string // sorted, each once
}

// All returns the designs, this shop's own last.
func All() []Design {
	return []Design{
		byUnit(true), byUnit(false), inStream("early"), inStream("late"), inBuckets(), rowFirst(), rowLast(), queuePerSKU(),
		ours("lanes"), ours("batch"),
	}
}

// nothing is the Prepare of a design that needs only the shop's tables.
func nothing(context.Context, Servers, map[string]int64) error { return nil }

package lab

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store"
)

// getLock is strategy.None under MySQL's named locks. The transaction and its locks share a connection: no other
// connection gets the locks before this one has released them or has ended. This is correct on one primary. Several
// locks of one session need MySQL 5.7.5 or MariaDB 10.0.2: before, a second GET_LOCK released the first.
//
// A lock has the name of its SKU: MySQL allows 64 characters for it, as many as a SKU may have. Names belong to the
// whole server: shops in two schemas share their locks.
type getLock struct {
	strategy.Shop
	db   *store.Store
	wait time.Duration
}

// Sell takes the locks before BEGIN and releases them after COMMIT.
func (s getLock) Sell(ctx context.Context, d *order.Draft) error {
	conn, err := s.db.DB().Conn(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", order.ErrBusy, err)
	}
	defer func() { _ = conn.Close() }() // back to the pool
	for _, sku := range slices.Sorted(slices.Values(d.SKUs())) {
		if err := s.take(ctx, conn, sku); err != nil { // 1. lock
			return fmt.Errorf("sku %q: %w", sku, err)
		}
		defer free(ctx, conn, sku) // 3. unlock, after the COMMIT
	}
	shop := s.Shop
	shop.Store = Store(s.db.On(conn))
	return strategy.None{Shop: shop}.Sell(ctx, d) // 2. BEGIN, read, write, COMMIT
}

// take waits for a lock of the connection. GET_LOCK returns 0 when time is up.
func (s getLock) take(ctx context.Context, conn *sql.Conn, name string) error {
	var got sql.NullBool
	err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", name, s.wait.Seconds()).Scan(&got)
	switch {
	case err != nil: // the session may have the lock
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		return fmt.Errorf("%w: %w", lock.ErrNotAcquired, err)
	case !got.Valid: // an error of the server
		return fmt.Errorf("%w: GET_LOCK returned NULL", lock.ErrNotAcquired)
	case !got.Bool:
		return fmt.Errorf("%w: %w", lock.ErrNotAcquired, lock.ErrTimeout)
	}
	return nil
}

// free releases a lock. If that fails, the connection is closed instead of going back to the pool: the
// lock ends with it.
func free(ctx context.Context, conn *sql.Conn, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freeBound)
	defer cancel()
	if _, err := conn.ExecContext(ctx, "DO RELEASE_LOCK(?)", name); err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}

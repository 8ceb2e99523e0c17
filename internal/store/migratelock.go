package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// migrationWait is how long one migration waits for another.
const migrationWait = 5 * time.Minute

// migrationLock is a lock of this schema among those of the whole server. Its
// name may have 64 characters, as the schema's may; so that is hashed. (MD5 is
// gone from MySQL 9.6 on.)
const migrationLock = "CONCAT('migrate:', LEFT(SHA2(DATABASE(), 256), 40))"

// lockMigrations takes a lock that belongs to one connection and to this schema:
// MySQL commits each CREATE by itself, so that two migrations at once would
// find each other's half. The server frees the lock when the connection ends. It
// is a connection of conns, which are closed after the migration.
func lockMigrations(ctx context.Context, conns *sql.DB) (unlock func() error, err error) {
	conn, err := conns.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connection: %w", withCause(ctx, err))
	}
	defer func() {
		if err != nil {
			_ = conn.Close()
		}
	}()
	deadline := time.Now().Add(migrationWait)
	for time.Now().Before(deadline) {
		// Short waits, so that no proxy or read timeout takes the silence for death.
		var got sql.NullInt64
		err = conn.QueryRowContext(ctx, "SELECT GET_LOCK("+migrationLock+", 10)").Scan(&got)
		if err != nil {
			return nil, fmt.Errorf("lock the migrations: %w", withCause(ctx, err))
		}
		if got.Int64 == 1 {
			return func() error { return unlockMigrations(ctx, conn) }, nil
		}
	}
	return nil, fmt.Errorf("lock the migrations: another one has been running for %v", migrationWait)
}

func unlockMigrations(ctx context.Context, conn *sql.Conn) error {
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var was sql.NullInt64
	err := conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK("+migrationLock+")").Scan(&was)
	if err == nil && was.Int64 != 1 {
		err = errors.New("the lock was not held any more")
	}
	if err != nil {
		return fmt.Errorf("unlock the migrations: %w", err)
	}
	return nil
}

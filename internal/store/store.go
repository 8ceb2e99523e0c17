// Package store keeps orders and stock in MySQL, MariaDB or SQLite, and audits them.
//
// All SQL goes through gorm with bound parameters, and reads the same on the three databases. Where they differ, this
// package levels it:
//
//   - Text compares byte by byte everywhere, trailing spaces included. MySQL's own
//     default would take the idempotency keys "ABC" and "abc" for one.
//   - Times are UTC, to the microsecond.
//   - "Rows affected" counts the rows that a WHERE matched, so that 0 means that
//     nothing matched, never that nothing changed.
//   - Text is never cut: MySQL refuses what is too long.
//   - TLS is verified or is none: a DSN that falls back to plaintext or trusts any
//     server is refused.
//   - Errors are told apart by their numbers (faults.go), never by their text.
//
// Errors of a Store are those of package order, stock.ErrInvalid, and the reason why a context ended.
//
// A transaction is repeated after a deadlock, rolled back after a lock wait timeout, and its COMMIT is not cut off by
// any cancellation (tx.go). A transaction whose client vanished is rolled back by the server after 90 s (wait_timeout
// in the DSN).
package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
)

// Store keeps orders and stock. It may be used by many goroutines at once.
type Store struct {
	db     *gorm.DB
	name   string // without a password
	sqlite bool

	// clock is the SQL expression for the time by the database's clock, in the form of a DATETIME(6) column: what all
	// instances agree on. It stands still while a statement runs, also while that waits for a lock.
	clock string
}

var _ order.Store = (*Store)(nil)

// Close closes all connections. Transactions that still run are rolled back.
func (s *Store) Close() error { return s.DB().Close() }

// DB returns the pool of connections.
func (s *Store) DB() *sql.DB {
	conns, err := s.db.DB()
	if err != nil {
		panic(err) // gorm was opened on a *sql.DB
	}
	return conns
}

// Name says which database it is, without a password, such as "mysql at db:3306, database shop".
func (s *Store) Name() string { return s.name }

// IsSQLite reports whether the database is a file, which has one writer at a time and no rows to lock.
func (s *Store) IsSQLite() bool { return s.sqlite }

// Version names the product and its version, such as "MySQL 9.7.0".
func (s *Store) Version(ctx context.Context) (string, error) {
	query := "SELECT VERSION()"
	if s.sqlite {
		query = "SELECT sqlite_version()"
	}
	var full string
	if err := s.db.WithContext(ctx).Raw(query).Row().Scan(&full); err != nil {
		return "", explain(ctx, "read the database's version", err)
	}
	number, _, _ := strings.Cut(full, "-") // the rest is the distributor's
	switch {
	case s.sqlite:
		return "SQLite " + number, nil
	case strings.Contains(full, "MariaDB"):
		return "MariaDB " + number, nil
	default:
		return "MySQL " + number, nil
	}
}

// Now returns the time by the database's clock, in UTC.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now dbTime
	if err := s.db.WithContext(ctx).Raw("SELECT " + s.clock).Row().Scan(&now); err != nil {
		return time.Time{}, explain(ctx, "read the database's clock", err)
	}
	return now.Time, nil
}

// jobRow is a day on which a daily job has run, or runs.
type jobRow struct {
	Job string `gorm:"primaryKey"`
	Day string `gorm:"primaryKey"` // such as 2026-11-23
}

func (jobRow) TableName() string { return "job_runs" }

// ClaimDay records that a daily job runs on this day. It reports whether no caller had before.
func (s *Store) ClaimDay(ctx context.Context, job, day string) (claimed bool, err error) {
	err = s.db.WithContext(ctx).Create(&jobRow{Job: job, Day: day}).Error
	if classify(err) == duplicate {
		return false, nil
	}
	return err == nil, explain(ctx, "claim the day of job "+job, err)
}

// UnclaimDay lets the job of this day be claimed again, as after a run that failed.
func (s *Store) UnclaimDay(ctx context.Context, job, day string) error {
	err := s.db.WithContext(ctx).Delete(&jobRow{Job: job, Day: day}).Error
	return explain(ctx, "give up the day of job "+job, err)
}

// dbTime is a column of type DATETIME(6): UTC, whole microseconds. SQLite's driver returns such a column as text,
// MySQL's as a time.
type dbTime struct{ time.Time }

// timeLayout is what a DATETIME(6) column takes and what SQLite keeps as text. All times have the same length, so
// that text sorts as time does.
const timeLayout = "2006-01-02 15:04:05.000000"

// Value is what is written: UTC, cut to the microsecond.
func (t dbTime) Value() (driver.Value, error) { return t.UTC().Format(timeLayout), nil }

// Scan reads what either driver returns.
func (t *dbTime) Scan(value any) error {
	switch v := value.(type) {
	case time.Time:
		t.Time = v.UTC()
	case string:
		parsed, err := time.Parse(timeLayout, v)
		if err != nil {
			return fmt.Errorf("column DATETIME(6): %w", err)
		}
		t.Time = parsed
	default:
		return fmt.Errorf("column DATETIME(6): want a time or text, got %T", value)
	}
	return nil
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"time"

	"gorm.io/gorm"
)

// Store keeps orders and stock: it is an order.Store. It may be used by many goroutines at once.
type Store struct {
	db     *gorm.DB
	pool   *sql.DB
	probe  *sql.DB // of Writable: one connection to a server
	name   string  // without a password
	hosts  []string
	group  *group // of several hosts
	sqlite bool
	conn   *sql.Conn // all transactions use it; nil for one of the pool each

	// clock is the SQL expression of the database's clock, which all instances share, in the form of a DATETIME(6)
	// column. It stands still while a statement runs, also while the statement waits for a lock.
	clock string
}

// On returns a Store that does everything on one connection, and leaves it open: what belongs to its session, such as a named
// lock, lasts from one transaction to the next. A connection that is lost is not replaced.
func (s *Store) On(conn *sql.Conn) *Store {
	on := *s
	on.conn, on.db = conn, s.db.Session(&gorm.Session{NewDB: true, Context: context.Background()})
	on.db.Statement.ConnPool = conn
	return &on
}

// Close closes all connections; one that a transaction uses is closed when that ends.
func (s *Store) Close() error {
	err := s.pool.Close()
	if s.probe != nil {
		err = errors.Join(err, s.probe.Close())
	}
	if s.group != nil {
		s.group.close()
	}
	return err
}

// DB returns the pool of connections.
func (s *Store) DB() *sql.DB { return s.pool }

// Name describes the database without a password, such as "mysql at db:3306, database shop".
func (s *Store) Name() string { return s.name }

// Hosts returns the host:port of each server that the database may be on; of a SQLite file, "file".
func (s *Store) Hosts() []string { return s.hosts }

// Primary returns which of Hosts takes writes, or an error that says of each of them why it does not. It does not wait:
// it returns what the hosts have answered in the last second or two. The only host counts as the primary.
func (s *Store) Primary() (host string, changes int, err error) {
	if s.group == nil {
		return s.hosts[0], 0, nil
	}
	return s.group.state()
}

// Writable returns nil if the database takes what an order writes, or an error with the server's own words. It has a
// connection of its own: if it waited for one behind thousands of orders, it would take a busy instance for a broken one.
// A SQLite file was written when it was migrated, at the start.
func (s *Store) Writable(ctx context.Context) error {
	if s.sqlite {
		return nil
	}
	_, _, err := s.Primary()
	if err == nil {
		err = s.tryWrites(ctx)
	}
	return failed(withCause(ctx, err), "%s", s.name)
}

// tryWrites runs statements that change no row but need every right that an order needs, from its placing to its end.
// After an error it drops the connection, since the address may lead to another server by now.
func (s *Store) tryWrites(ctx context.Context) error {
	conn, err := s.probe.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() // it goes back to the pool
	for _, statement := range []string{
		"INSERT INTO orders SELECT * FROM orders WHERE FALSE",
		"INSERT INTO order_lines SELECT * FROM order_lines WHERE FALSE",
		"INSERT INTO movements SELECT * FROM movements WHERE FALSE",
		"INSERT INTO idempotency_keys SELECT * FROM idempotency_keys WHERE FALSE",
		"INSERT INTO buyers SELECT * FROM buyers WHERE FALSE",
		"INSERT INTO buyer_units SELECT * FROM buyer_units WHERE FALSE ON DUPLICATE KEY UPDATE units = 0",
		"INSERT INTO payments SELECT * FROM payments WHERE FALSE",
		"UPDATE payments SET refusal = refusal WHERE id = ''",
		"UPDATE skus SET available = available WHERE name = ''",
		"UPDATE orders SET status = status WHERE id = ''",
		"DELETE FROM idempotency_keys WHERE buyer = '' AND idempotency_key = ''",
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			drop(conn)
			return err
		}
	}
	return nil
}

// IsSQLite reports whether the database is a file, which has one writer at a time and no rows to lock.
func (s *Store) IsSQLite() bool { return s.sqlite }

// BackUp copies a SQLite file, as it is at one moment, to a new file of mode 0600. Others may write to the database
// meanwhile. The new file is there when it is whole and on disk, or not at all; an existing file is an error.
func (s *Store) BackUp(ctx context.Context, to string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".part-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if err := s.db.WithContext(ctx).Exec("VACUUM INTO ?", f.Name()).Error; err != nil {
		return explain(ctx, "copy the database", err)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return os.Link(f.Name(), to) // unlike a rename, it replaces nothing
}

// Version returns the product and its version, such as "MySQL 9.7.0".
func (s *Store) Version(ctx context.Context) (string, error) {
	query := "SELECT CONCAT(IF(VERSION() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), SUBSTRING_INDEX(VERSION(), '-', 1))"
	if s.sqlite {
		query = "SELECT 'SQLite ' || sqlite_version()"
	}
	var version string
	err := s.db.WithContext(ctx).Raw(query).Row().Scan(&version)
	return version, explain(ctx, "read the database's version", err)
}

// Now returns the time by the database's clock, in UTC.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now dbTime
	err := s.db.WithContext(ctx).Raw("SELECT " + s.clock).Row().Scan(&now)
	return now.Time, explain(ctx, "read the database's clock", err)
}

// HasRun reports whether a daily job has run for a day, such as 2026-11-23.
func (s *Store) HasRun(ctx context.Context, job, day string) (has bool, err error) {
	err = s.db.WithContext(ctx).Raw("SELECT COUNT(*) > 0 FROM job_runs WHERE job = ? AND day = ?", job, day).Row().Scan(&has)
	return has, explain(ctx, "read the runs of job "+job, err)
}

// NoteRun notes that a daily job has run for a day, and reports whether that was not noted before.
func (s *Store) NoteRun(ctx context.Context, job, day string) (first bool, err error) {
	err = s.db.WithContext(ctx).Exec("INSERT INTO job_runs (job, day) VALUES (?, ?)", job, day).Error
	if classify(err) == duplicate {
		return false, nil
	}
	return err == nil, explain(ctx, "note the run of job "+job, err)
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
)

// Store keeps orders and stock: it is an order.Store. It may be used by many goroutines at once.
type Store struct {
	db     *gorm.DB
	pool   *sql.DB
	shared *sql.DB // pool of Sharing
	probe  *sql.DB // one connection to a server, for Writable
	name   string  // without a password
	hosts  []string
	group  *group // nil for one host
	sqlite bool
	path   string                    // of the SQLite file
	file   os.FileInfo               // as it was opened
	full   *atomic.Pointer[diskFull] // the last time that a transaction found the disk full; nil for never
	counts chan struct{}             // has an element while a recount runs, which takes two connections of the pool
	conn   *sql.Conn                 // for all transactions; nil: each takes one of the pool

	// clock is the SQL expression of the database's clock, which all instances share, as a DATETIME(6). The clock stands
	// still while a statement runs, even if the statement waits for a lock.
	clock string
}

// On returns a Store that uses only this connection, and leaves it open. The state of the session, such as a named
// lock, lasts from one transaction to the next. A lost connection is not replaced.
func (s *Store) On(conn *sql.Conn) *Store {
	on := *s
	on.conn, on.db = conn, s.db.Session(&gorm.Session{NewDB: true, Context: context.Background()})
	on.db.Statement.ConnPool = conn
	return &on
}

// Sharing returns a Store for transactions that serve several requests. For a row that another transaction has locked,
// such a transaction waits for a second at most, the shortest time that MySQL can wait. If the instance stands still,
// the server ends the transaction after half of the wait_timeout, because an ordinary transaction of the instance may
// have waited for its rows, and keeps them for the whole wait_timeout.
func (s *Store) Sharing() *Store {
	sharing := *s
	if s.shared != nil { // in SQLite, no other transaction writes
		sharing.pool = s.shared
	}
	return &sharing
}

// Close closes all connections. If a transaction uses a connection, the connection closes when the transaction ends.
func (s *Store) Close() error {
	err := s.pool.Close()
	for _, pool := range []*sql.DB{s.shared, s.probe} {
		if pool != nil {
			err = errors.Join(err, pool.Close())
		}
	}
	if s.group != nil {
		s.group.close()
	}
	if !s.sqlite {
		return nil // the error means only that the server had already ended a connection
	}
	return err
}

// DB returns the pool of connections.
func (s *Store) DB() *sql.DB { return s.pool }

// Name describes the database without a password, such as "mysql at db:3306, database shop".
func (s *Store) Name() string { return s.name }

// Hosts returns the host:port of each server of the database, or "file" for SQLite.
func (s *Store) Hosts() []string { return s.hosts }

// Primary returns the host that takes writes, and how often another host has become the primary. If no host takes
// writes, the error says of each host why. Primary does not wait: it returns the hosts' answers of the last second or
// two. A single host always counts as the primary.
func (s *Store) Primary() (host string, changes int, err error) {
	if s.group == nil {
		return s.hosts[0], 0, nil
	}
	return s.group.state()
}

// diskFull is the error of a transaction that found the disk of the database full.
type diskFull struct {
	err error
	at  time.Time
}

// Writable returns nil if the database accepts the writes of an order, or an error with the server's own words. It has
// a connection of its own: waiting behind thousands of orders, a busy instance would look like a broken one. For ten
// seconds after a transaction that found the disk full, it returns the error of that transaction.
func (s *Store) Writable(ctx context.Context) error {
	_, _, err := s.Primary()
	if full := s.full.Load(); err == nil && full != nil && time.Since(full.at) < 10*time.Second {
		err = full.err
	}
	if err == nil {
		err = s.checkFile()
	}
	if err == nil && !s.sqlite { // the start has migrated the file
		err = s.tryWrites(ctx)
	}
	return failed(withCause(ctx, err), "%s", s.name)
}

// checkFile returns an error if the path of the SQLite file leads to another file by now, or to none: SQLite would go
// on writing to the file that was opened, and its orders would be lost.
func (s *Store) checkFile() error {
	if !s.sqlite {
		return nil
	}
	if now, err := os.Stat(s.path); err != nil || !os.SameFile(s.file, now) {
		return &order.Error{Code: order.ErrBusy.Code, Text: s.name + " was replaced or removed while it was open: restart the shop"}
	}
	return nil
}

// tryWrites runs statements that change no row but need every privilege that an order needs, from its placing to its
// end. After an error it drops the connection, because the address may lead to another server by now.
func (s *Store) tryWrites(ctx context.Context) error {
	conn, err := s.probe.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() // returns it to the pool
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

// IsSQLite reports whether the database is a SQLite file, which has one writer at a time and no row locks.
func (s *Store) IsSQLite() bool { return s.sqlite }

// BackUp copies a SQLite file, as of one moment, to a new file of mode 0600. Other processes may write to the database
// meanwhile. The new file appears once it is complete and on disk. An existing file is an error.
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

// HasRun reports whether a daily job has run for a day such as 2026-11-23.
func (s *Store) HasRun(ctx context.Context, job, day string) (has bool, err error) {
	err = s.db.WithContext(ctx).Raw("SELECT COUNT(*) > 0 FROM job_runs WHERE job = ? AND day = ?", job, day).Row().Scan(&has)
	return has, explain(ctx, "read the runs of job "+job, err)
}

// NoteRun notes that a daily job has run for a day, and reports whether this is the first note.
func (s *Store) NoteRun(ctx context.Context, job, day string) (first bool, err error) {
	err = s.db.WithContext(ctx).Exec("INSERT INTO job_runs (job, day) VALUES (?, ?)", job, day).Error
	if classify(err) == duplicate {
		return false, nil
	}
	return err == nil, explain(ctx, "note the run of job "+job, err)
}

package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// migrationWait is how long one migration waits for another.
const migrationWait = 5 * time.Minute

// versionTables are what goose would make, but for UNIQUE and IF NOT EXISTS: goose goes on with no table that lacks
// the row of version 0, as one does whose maker was killed.
const (
	mysqlVersions = `CREATE TABLE IF NOT EXISTS goose_db_version (
		id         BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
		version_id BIGINT          NOT NULL UNIQUE,
		is_applied BOOLEAN         NOT NULL,
		tstamp     DATETIME        NULL DEFAULT CURRENT_TIMESTAMP)`
	sqliteVersions = `CREATE TABLE IF NOT EXISTS goose_db_version (
		id         INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL UNIQUE,
		is_applied INTEGER NOT NULL,
		tstamp     TIMESTAMP DEFAULT (datetime('now')))`
)

// Migrate applies the migrations that the database lacks and returns how many. Several may run at once, from several
// processes: one migrates, the others wait and find nothing to do. A migration that was interrupted can be run again.
//
// MySQL commits each CREATE and ALTER by itself, and a lock of the server keeps a second migration out. In SQLite a
// migration is one transaction, together with the row of its version: of two that apply the same one, the second is
// rolled back, finds that row, and goes on behind it.
func (s *Store) Migrate(ctx context.Context) (applied int, err error) {
	dialect, versions, zero := goose.DialectMySQL, mysqlVersions, "INSERT IGNORE"
	options := []goose.ProviderOption{
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()), goose.WithSessionLocker(migrationLock{}),
	}
	if s.sqlite {
		dialect, versions, zero = goose.DialectSQLite3, sqliteVersions, "INSERT OR IGNORE"
		options = options[:2]
	}
	for _, statement := range []string{versions, zero + " INTO goose_db_version (version_id, is_applied) VALUES (0, TRUE)"} {
		if err := s.db.WithContext(ctx).Exec(statement).Error; err != nil {
			return 0, explain(ctx, "migrate: table of versions", err)
		}
	}
	files, err := s.migrations()
	if err != nil {
		return 0, err
	}
	provider, err := goose.NewProvider(dialect, s.DB(), files, options...)
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	for {
		results, err := provider.Up(ctx)
		var partial *goose.PartialError
		if errors.As(err, &partial) {
			results = partial.Applied
		}
		applied += len(results)
		if partial == nil || !s.sqlite || !s.isApplied(ctx, partial.Failed.Source.Version) {
			return applied, explain(ctx, "migrate", err)
		}
	}
}

func (s *Store) migrations() (fs.FS, error) {
	if s.sqlite {
		return fs.Sub(migrations, "migrations/sqlite")
	}
	return fs.Sub(migrations, "migrations/mysql")
}

func (s *Store) isApplied(ctx context.Context, version int64) bool {
	var rows int
	err := s.db.WithContext(ctx).Raw("SELECT COUNT(*) FROM goose_db_version WHERE version_id = ?", version).Row().Scan(&rows)
	return err == nil && rows > 0
}

// migrationLock is a lock of MySQL and MariaDB that belongs to one connection and to this schema. The server frees it
// when the connection ends.
type migrationLock struct{}

// lockName is unique among the schemas of the server. It may have 64 characters, as the schema's may; so that is
// hashed. (MD5 is gone from MySQL 9.6 on.)
const lockName = "CONCAT('migrate:', LEFT(SHA2(DATABASE(), 256), 40))"

// SessionLock implements lock.SessionLocker of goose.
func (migrationLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	ctx, cancel := context.WithTimeoutCause(ctx, migrationWait, errors.New("another migration runs"))
	defer cancel()
	for {
		// Short waits, so that no proxy or read timeout takes the silence for death.
		var got sql.NullInt64
		if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK("+lockName+", 10)").Scan(&got); err != nil {
			return fmt.Errorf("lock the migrations: %w", withCause(ctx, err))
		}
		if got.Int64 == 1 {
			return nil
		}
	}
}

// SessionUnlock implements lock.SessionLocker of goose.
func (migrationLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var was sql.NullInt64
	err := conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK("+lockName+")").Scan(&was)
	if err == nil && was.Int64 != 1 {
		err = errors.New("the lock was not held any more")
	}
	if err != nil {
		return fmt.Errorf("unlock the migrations: %w", err)
	}
	return nil
}

// Pending reports whether the database lacks a migration that this program brings along. It only reads, and so works
// for a user who may not change the schema. A database that is ahead of the program lacks nothing.
func (s *Store) Pending(ctx context.Context) (bool, error) {
	files, err := s.migrations()
	if err != nil {
		return false, err
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return false, err
	}
	latest, err := goose.NumericComponent(names[len(names)-1]) // names are sorted
	if err != nil {
		return false, err
	}
	tables := "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?"
	if s.sqlite {
		tables = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
	}
	db := s.db.WithContext(ctx)
	var found int
	if err := db.Raw(tables, goose.DefaultTablename).Row().Scan(&found); err != nil || found == 0 {
		return true, explain(ctx, "look for the table of migrations", err)
	}
	var version int64
	err = db.Raw("SELECT MAX(version_id) FROM " + goose.DefaultTablename + " WHERE is_applied").Row().Scan(&version)
	return version < latest, explain(ctx, "read the schema's version", err)
}

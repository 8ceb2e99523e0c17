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

// versionTable creates goose's own table, with UNIQUE and IF NOT EXISTS added, and versionZero its first row. Goose
// itself creates both in two steps, and refuses a table without the row, which a process that is killed in between
// leaves behind. SQLite ignores the hint and numbers the rows by itself.
const (
	versionTable = `CREATE TABLE IF NOT EXISTS goose_db_version (
		id         INTEGER  NOT NULL PRIMARY KEY /*! AUTO_INCREMENT */,
		version_id BIGINT   NOT NULL UNIQUE,
		is_applied BOOLEAN  NOT NULL,
		tstamp     DATETIME NULL DEFAULT CURRENT_TIMESTAMP) /*! ENGINE=InnoDB */`
	versionZero = `REPLACE INTO goose_db_version (id, version_id, is_applied) VALUES (1, 0, TRUE)`
)

func (s *Store) goose() (*goose.Provider, error) {
	dialect, folder := goose.DialectMySQL, "migrations/mysql"
	options := []goose.ProviderOption{
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()), goose.WithSessionLocker(migrationLock{}),
	}
	if s.sqlite {
		dialect, folder, options = goose.DialectSQLite3, "migrations/sqlite", options[:2]
	}
	files, _ := fs.Sub(migrations, folder) // an error only for an invalid path
	return goose.NewProvider(dialect, s.pool, files, options...)
}

// ErrTableInUse means that other sessions use a table that a migration has to change.
var ErrTableInUse = errors.New("a table is in use")

// Migrate applies the migrations that the database lacks, and returns their number. Several processes may migrate a
// server at once: one applies the migrations; the others wait, a minute at most, and find nothing to do. The end of ctx
// does not interrupt a migration, because the server would go on with its statement. An interrupted migration can be
// run again. A database with tables of another program is refused before it is changed.
//
// A statement that changes a table waits for the transactions that have used the table, and orders wait
// behind it. After two seconds, Migrate gives up, and leaves no statement on the server: ErrTableInUse.
// It can be repeated after a pause, in which orders go on.
//
// MySQL commits each CREATE and ALTER by itself, so that a lock of the server has to keep a second
// process out. In SQLite, a migration and the row of its version are one transaction: if two processes
// apply the same migration, the second fails.
func (s *Store) Migrate(ctx context.Context) (applied int, err error) {
	if err := s.refuseForeign(ctx); err != nil {
		return 0, err
	}
	applied, err = s.migrate(ctx)
	if classify(err) == lockWait {
		return applied, fmt.Errorf("migrate: %w: %s: %w", ErrTableInUse, s.oldestTransaction(ctx), err)
	}
	return applied, explain(ctx, "migrate", err)
}

func (s *Store) migrate(ctx context.Context) (applied int, err error) {
	for _, statement := range []string{versionTable, versionZero} {
		if err := s.db.WithContext(ctx).Exec(statement).Error; err != nil {
			return 0, fmt.Errorf("table of versions: %w", err)
		}
	}
	provider, err := s.goose()
	if err != nil {
		return 0, err
	}
	results, err := provider.Up(context.WithoutCancel(ctx))
	return len(results), err
}

// oldestTransaction describes the session that is most likely to keep a table in use. MariaDB has the same tables.
func (s *Store) oldestTransaction(ctx context.Context) (session string) {
	err := s.db.WithContext(ctx).Raw(`
		SELECT CONCAT('session ', p.id, ' of ', p.user, ' at ', p.host, ' has the oldest transaction, from ', t.trx_started)
		FROM information_schema.innodb_trx AS t JOIN information_schema.processlist AS p ON p.id = t.trx_mysql_thread_id
		ORDER BY p.db <=> DATABASE() DESC, t.trx_started, p.id LIMIT 1`).Row().Scan(&session)
	if err != nil {
		return "its session is unknown: " + err.Error()
	}
	return session
}

// refuseForeign refuses a database that has a table with a name of the shop's but was never migrated. It looks for the
// table of versions last, because another process that migrates at the same time makes that table first.
func (s *Store) refuseForeign(ctx context.Context) error {
	table, err := s.hasTable(ctx, "orders", "skus", "payments", "buyers")
	if err != nil || table == "" {
		return err
	}
	versions, err := s.hasTable(ctx, goose.DefaultTablename)
	if err == nil && versions == "" {
		err = fmt.Errorf("its table %s is not the shop's, because there is no table %s: give the shop a database of its own",
			table, goose.DefaultTablename)
	}
	return err
}

// hasTable returns the name of one of these tables that exists, or an empty name.
func (s *Store) hasTable(ctx context.Context, names ...string) (found string, err error) {
	query := "SELECT COALESCE(MIN(table_name), '') FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name IN ?"
	if s.sqlite {
		query = "SELECT COALESCE(MIN(name), '') FROM sqlite_master WHERE name IN ?"
	}
	err = s.db.WithContext(ctx).Raw(query, names).Row().Scan(&found)
	return found, explain(ctx, "look for tables", err)
}

// Pending reports whether the database lacks a migration of this program. It only reads, for a user who may not change
// the schema. A database that is ahead of the program lacks none. Tables of another program are an error.
func (s *Store) Pending(ctx context.Context) (bool, error) {
	versions, err := s.hasTable(ctx, goose.DefaultTablename)
	if err != nil {
		return false, err
	}
	if versions == "" {
		return true, s.refuseForeign(ctx)
	}
	provider, err := s.goose()
	if err != nil {
		return false, err
	}
	pending, err := provider.HasPending(ctx) // only with a table of versions, or it would make one
	return pending, explain(ctx, "read the schema's version", err)
}

// migrationLock is a named lock of MySQL and MariaDB for this schema. The server releases it when its connection ends.
type migrationLock struct{}

// lockName is unique on the server. The schema's name is hashed, because a lock's name has at most 64 characters.
const lockName = "CONCAT('migrate:', LEFT(SHA2(DATABASE(), 256), 40))"

func (migrationLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	// The long wait_timeout keeps the lock while the client stands still.
	_, err := conn.ExecContext(ctx, "SET SESSION lock_wait_timeout = 2, wait_timeout = 600") // seconds
	if err != nil {
		return failed(withCause(ctx, err), "lock the migrations")
	}
	var got sql.NullInt64
	err = conn.QueryRowContext(ctx, "SELECT GET_LOCK("+lockName+", 60)").Scan(&got) // seconds, below any read timeout
	if err == nil && got.Int64 != 1 {
		err = errors.New("another migration runs")
	}
	return failed(withCause(ctx, err), "lock the migrations")
}

func (migrationLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := conn.ExecContext(ctx, "SELECT RELEASE_LOCK("+lockName+")")
	return failed(err, "unlock the migrations")
}

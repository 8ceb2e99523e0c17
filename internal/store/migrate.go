package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate applies the migrations that the database lacks and returns how many.
// Several may run at once, from several processes: one migrates, the others
// wait and find nothing to do.
//
// The wait heeds ctx. On a server what has begun is finished, whatever becomes of
// ctx, because the server would go on with a statement that nobody waits for. There
// is no bound but the readTimeout of the DSN, if it has one: a huge table takes long.
// Whoever is killed all the same can migrate again. On SQLite a ctx that ends takes
// back the migration that runs.
func Migrate(ctx context.Context, db *gorm.DB) (applied int, err error) {
	if db.Name() == dialectSQLite {
		conns, err := db.DB()
		if err != nil {
			return 0, err
		}
		return migrateSQLite(ctx, db, conns)
	}
	conns, err := patientPool(db)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conns.Close() }() // the answers are known
	unlock, err := lockMigrations(ctx, conns)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return migrateServer(context.WithoutCancel(ctx), conns)
}

// patientPool opens connections to db's server on which an answer may take as long
// as it does.
func patientPool(db *gorm.DB) (*sql.DB, error) {
	dialector, ok := db.Dialector.(*gormmysql.Dialector)
	if !ok || dialector.DSNConfig == nil {
		return nil, errors.New("migrate: the database was not opened by this package")
	}
	connector, err := mysql.NewConnector(dialector.DSNConfig)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return sql.OpenDB(connector), nil
}

// What goose makes on a server. It goes on with no table that lacks the row of
// version 0, as one does whose maker was killed.
const (
	serverVersionTable = `CREATE TABLE IF NOT EXISTS goose_db_version (
	id         BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
	version_id BIGINT          NOT NULL,
	is_applied BOOLEAN         NOT NULL,
	tstamp     DATETIME        NULL DEFAULT CURRENT_TIMESTAMP)`
	versionZero = `INSERT INTO goose_db_version (version_id, is_applied)
	SELECT 0, TRUE FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM goose_db_version WHERE version_id = 0)`
)

// migrateServer migrates MySQL and MariaDB. The lock is held.
func migrateServer(ctx context.Context, conns *sql.DB) (applied int, err error) {
	for _, statement := range []string{serverVersionTable, versionZero} {
		if _, err := conns.ExecContext(ctx, statement); err != nil {
			return 0, fmt.Errorf("migrate: table of migrations: %w", err)
		}
	}
	all, err := steps()
	if err != nil {
		return 0, err
	}
	return up(ctx, goose.DialectMySQL, conns, nil, goose.WithGoMigrations(all...))
}

// versionTable is what goose makes in SQLite, but for UNIQUE.
const versionTable = `CREATE TABLE IF NOT EXISTS goose_db_version (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	version_id INTEGER NOT NULL UNIQUE,
	is_applied INTEGER NOT NULL,
	tstamp     TIMESTAMP DEFAULT (datetime('now')))`

// migrateSQLite has no lock to take, and needs none: a migration is one
// transaction there, together with the row that says so. Of two that apply the
// same one, the second fails, is rolled back as a whole, finds that row, and
// goes on behind it.
func migrateSQLite(ctx context.Context, db *gorm.DB, conns *sql.DB) (applied int, err error) {
	err = InTx(ctx, db, func(tx *gorm.DB) error {
		if err := tx.Exec(versionTable).Error; err != nil {
			return err
		}
		return tx.Exec("INSERT OR IGNORE INTO goose_db_version (version_id, is_applied) VALUES (0, TRUE)").Error
	})
	if err != nil {
		return 0, fmt.Errorf("migrate: table of migrations: %w", err)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return 0, err
	}
	for {
		done, err := up(ctx, goose.DialectSQLite3, conns, files)
		applied += done
		var partial *goose.PartialError
		if !errors.As(err, &partial) || !isApplied(ctx, db, partial.Failed.Source.Version) {
			return applied, err
		}
	}
}

func isApplied(ctx context.Context, db *gorm.DB, version int64) bool {
	var rows int
	err := db.WithContext(ctx).Raw("SELECT COUNT(*) FROM goose_db_version WHERE version_id = ?", version).Row().Scan(&rows)
	return err == nil && rows > 0
}

func up(ctx context.Context, dialect goose.Dialect, conns *sql.DB, files fs.FS, options ...goose.ProviderOption) (applied int, err error) {
	provider, err := goose.NewProvider(dialect, conns, files, append(options,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))...)
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	results, err := provider.Up(ctx)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		results = partial.Applied
	}
	if err != nil {
		return len(results), fmt.Errorf("migrate: %w", withCause(ctx, err))
	}
	return len(results), nil
}

package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate applies the migrations that the database lacks and returns how many.
// Several may run at once, from several processes: one migrates, the others
// wait and find nothing to do.
func Migrate(ctx context.Context, db *gorm.DB) (applied int, err error) {
	conns, err := db.DB()
	if err != nil {
		return 0, err
	}
	if db.Name() == dialectSQLite {
		return migrateSQLite(ctx, db, conns)
	}
	unlock, err := lockMigrations(ctx, conns)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return up(ctx, goose.DialectMySQL, conns)
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
	for {
		done, err := up(ctx, goose.DialectSQLite3, conns)
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

func up(ctx context.Context, dialect goose.Dialect, conns *sql.DB) (applied int, err error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return 0, err
	}
	provider, err := goose.NewProvider(dialect, conns, files,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
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

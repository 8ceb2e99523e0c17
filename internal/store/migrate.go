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
	if db.Dialector.Name() == dialectSQLite {
		return migrateSQLite(ctx, db, conns)
	}
	unlock, err := lockMigrations(ctx, conns)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return up(ctx, goose.DialectMySQL, conns)
}

// migrateSQLite has no lock to take, and needs none: a migration is one
// transaction there. Whoever comes second fails as a whole, and looks again.
func migrateSQLite(ctx context.Context, db *gorm.DB, conns *sql.DB) (applied int, err error) {
	for range attempts {
		var done int
		done, err = up(ctx, goose.DialectSQLite3, conns)
		applied += done
		if err == nil || ctx.Err() != nil {
			return applied, err
		}
		if pending, failed := Pending(ctx, db); failed == nil && !pending {
			return applied, nil
		}
	}
	return applied, err
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

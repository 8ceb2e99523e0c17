package store

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"
)

// Pending reports whether the database lacks a migration that this program
// brings along. It only reads, and so works for a user who may not change the
// schema. A database that is ahead of the program lacks nothing.
func Pending(ctx context.Context, db *gorm.DB) (bool, error) {
	latest, err := latestMigration()
	if err != nil {
		return false, err
	}
	tables := "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?"
	if db.Name() == dialectSQLite {
		tables = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
	}
	db = db.WithContext(ctx)
	var found int
	if err := db.Raw(tables, goose.DefaultTablename).Row().Scan(&found); err != nil {
		return false, fmt.Errorf("look for the table of migrations: %w", err)
	}
	if found == 0 {
		return true, nil
	}
	var version int64
	err = db.Raw("SELECT COALESCE(MAX(version_id), 0) FROM " + goose.DefaultTablename + " WHERE is_applied").Row().Scan(&version)
	if err != nil {
		return false, fmt.Errorf("read the schema's version: %w", err)
	}
	return version < latest, nil
}

// latestMigration is the highest number of the files.
func latestMigration() (latest int64, err error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return 0, fmt.Errorf("migration %s: %w", name, err)
		}
		latest = max(latest, version)
	}
	return latest, nil
}

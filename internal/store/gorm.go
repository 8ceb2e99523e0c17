package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Names of gorm's dialects, as db.Name() tells them. MariaDB is mysql.
const (
	dialectMySQL  = "mysql"
	dialectSQLite = "sqlite"
)

func gormConfig() *gorm.Config {
	return &gorm.Config{
		// One statement is atomic by itself; more than one go through InTx.
		SkipDefaultTransaction: true,
		// The driver's interpolation saves the same round trips without a cache of
		// statements, and without taking a second connection inside a transaction.
		PrepareStmt:          false,
		DisableAutomaticPing: true,
		Logger:               logger.Discard, // errors are returned
		NowFunc:              func() time.Time { return time.Now().UTC() },
	}
}

// Close closes all connections. Transactions that still run are rolled back.
func Close(db *gorm.DB) error {
	conns, err := db.DB()
	if err != nil {
		return err
	}
	return conns.Close()
}

// Version names the product and its version, such as "MySQL 9.7.0".
func Version(ctx context.Context, db *gorm.DB) (string, error) {
	query := "SELECT VERSION()"
	if db.Name() == dialectSQLite {
		query = "SELECT sqlite_version()"
	}
	var full string
	if err := db.WithContext(ctx).Raw(query).Row().Scan(&full); err != nil {
		return "", fmt.Errorf("ask for the database's version: %w", err)
	}
	number, _, _ := strings.Cut(full, "-") // the rest is the distributor's
	switch {
	case db.Name() == dialectSQLite:
		return "SQLite " + number, nil
	case strings.Contains(full, "MariaDB"):
		return "MariaDB " + number, nil
	default:
		return "MySQL " + number, nil
	}
}

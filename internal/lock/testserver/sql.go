package testserver

import (
	"context"
	"crypto/rand"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// collation tells every two strings apart that differ in a byte, and both servers have it.
const collation = "utf8mb4_bin"

// MySQL returns the DSN of an empty schema on a MySQL that the tests of this package share. The schema is dropped when t
// ends. Times are parsed, as UTC; strings compare by their bytes. The user is root.
func MySQL(t testing.TB) (dsn string) {
	t.Helper()
	return pool.shared(t, mysqlKind()).DSN(t)
}

// MariaDB is MySQL on a MariaDB.
func MariaDB(t testing.TB) (dsn string) {
	t.Helper()
	return pool.shared(t, mariadbKind()).DSN(t)
}

// DSN makes an empty schema on a MySQL or MariaDB and returns its data source name; the schema is dropped when t ends.
func (s *Server) DSN(t testing.TB) string {
	t.Helper()
	schema := "t_" + strings.ToLower(rand.Text()[:16])
	if err := s.exec("CREATE DATABASE " + schema + " CHARACTER SET utf8mb4 COLLATE " + collation); err != nil {
		t.Fatalf("testserver: create schema on %s: %v", s, err)
	}
	t.Cleanup(func() {
		// A transaction that the test left open would block the DROP: say so and go on.
		if err := s.exec("DROP DATABASE IF EXISTS " + schema); err != nil {
			t.Logf("testserver: schema %s stays until its server ends: %v", schema, err)
		}
	})
	return sqlConfig(s.addr, schema).FormatDSN()
}

func (s *Server) exec(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return withSQL(s.addr, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, statement)
		return err
	})
}

func sqlVersion(ctx context.Context, addr string) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err = withSQL(addr, func(db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version)
	})
	return version, err
}

func withSQL(addr string, f func(*sql.DB) error) error {
	config := sqlConfig(addr, "")
	config.Logger = &mysql.NopLogger{} // a server that is not up yet is no news
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	return f(db)
}

func sqlConfig(addr, schema string) *mysql.Config {
	config := mysql.NewConfig()
	config.User, config.Passwd = "root", rootPassword
	config.Net, config.Addr, config.DBName = "tcp", addr, schema
	config.ParseTime, config.Loc = true, time.UTC
	config.Collation = collation
	return config
}

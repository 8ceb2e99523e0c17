package source

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/app"
	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/servers"
)

// SQL is a MySQL or MariaDB.
type SQL struct {
	DSN   string // holds a password
	About string // version, place and how durable a commit is, for people
	stop  func() error
}

// Stop ends what OpenSQL started. Once is enough.
func (s *SQL) Stop() error {
	if s.stop == nil {
		return nil
	}
	return s.stop()
}

// OpenSQL takes the server given, or else a container of MySQL or MariaDB, whose
// commits are on disk when they return.
func OpenSQL(ctx context.Context, given string, mariadb bool) (*SQL, error) {
	if given != "" {
		where, err := app.MySQLAddress(given)
		if err != nil {
			return nil, err
		}
		return described(ctx, &SQL{DSN: given}, "given, at "+where)
	}
	start := servers.StartMySQL
	if mariadb {
		start = servers.StartMariaDB
	}
	c, err := start(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; without Docker, give a server with --mysql", err)
	}
	return described(ctx, &SQL{DSN: c.DSN(), stop: c.Close}, "a container of "+c.Image)
}

// described waits until the server tells its version, and reads how it commits.
func described(ctx context.Context, s *SQL, kind string) (*SQL, error) {
	config, err := mysql.ParseDSN(s.DSN)
	if err != nil {
		return nil, cleanup.Join(errors.New("--mysql: not a DSN such as user:password@tcp(host:3306)/database"), s.Stop())
	}
	config.Logger = &mysql.NopLogger{} // it is not ready at first, which is nothing to tell
	config.Timeout = 2 * time.Second
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, cleanup.Join(err, s.Stop())
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	var v commits
	err = await(ctx, func(ctx context.Context) error {
		return db.QueryRowContext(ctx, "SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog").
			Scan(&v.version, &v.flush, &v.binlog, &v.sync)
	})
	if err != nil {
		return nil, cleanup.Join(fmt.Errorf("database, %s: %w", kind, err), s.Stop())
	}
	s.About = v.String() + "; " + kind
	return s, nil
}

// commits are the variables that decide whether a commit that has returned
// survives a power cut.
type commits struct {
	version     string
	flush, sync int
	binlog      bool
}

// Durable: each commit is flushed, in the log of the engine and in the binary log
// if there is one.
func (c commits) durable() bool { return c.flush == 1 && (!c.binlog || c.sync == 1) }

func (c commits) String() string {
	word, binlog := "durable", "log_bin=OFF"
	if !c.durable() {
		word = "NOT durable"
	}
	if c.binlog {
		binlog = "log_bin=ON"
	}
	return fmt.Sprintf("%s, %s commits (innodb_flush_log_at_trx_commit=%d, %s, sync_binlog=%d)",
		c.version, word, c.flush, binlog, c.sync)
}

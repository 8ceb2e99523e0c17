package store

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"modernc.org/sqlite"

	"example.com/shop/internal/order"
)

// Options are the options for opening a database.
type Options struct {
	TLS     *tls.Config                    // requires TLS of a server; nil leaves TLS to the DSN
	Through func(driver.Connector) *sql.DB // opens the pool instead of sql.OpenDB, so that the caller can observe it
}

// MySQL opens a database on a MySQL or MariaDB server. If the DSN names several hosts, it opens the host that takes
// writes. Until ctx ends, it waits for a server that does not answer. An answer such as "access denied", an old
// version, a certificate that cannot be verified, and an invalid DSN are errors at once. No error shows the password.
func MySQL(ctx context.Context, dsn string, o Options) (*Store, error) {
	configs, err := mysqlConfigs(dsn, o.TLS)
	if err != nil {
		return nil, err
	}
	s := &Store{clock: "UTC_TIMESTAMP(6)"}
	for _, config := range configs {
		s.hosts = append(s.hosts, config.Addr)
	}
	s.name = "mysql at " + strings.Join(s.hosts, ",") + ", database " + configs[0].DBName
	var connector driver.Connector
	if len(configs) > 1 {
		s.group, err = newGroup(ctx, configs)
		connector = s.group
	} else {
		connector, err = mysql.NewConnector(configs[0])
		connector = ownSession{connector, session}
	}
	if err != nil {
		return nil, fmt.Errorf("database settings: mysql DSN: %w", err)
	}
	s.pool = o.pool(connector, 32) // all instances share the server's max_connections
	// Half of the wait_timeout, so that a stopped instance frees the rows of a batch sooner: see Sharing.
	s.shared = o.pool(ownSession{connector, []string{"SET innodb_lock_wait_timeout = 1, wait_timeout = (@@wait_timeout + 1) DIV 2"}}, 12)
	s.probe = Options{}.pool(connector, 1)
	for _, pool := range []*sql.DB{s.pool, s.shared, s.probe} {
		pool.SetConnMaxIdleTime(idleInPool)
		pool.SetConnMaxLifetime(5 * time.Minute) // so that a new server behind the address gets connections
	}
	// SkipInitializeWithVersion: gorm would ask for the version without a context, and only gorm's migrations need it.
	return s.connect(ctx, gormmysql.New(gormmysql.Config{Conn: s.pool, SkipInitializeWithVersion: true}))
}

// ownSession opens connections on which the statements have run.
type ownSession struct {
	driver.Connector
	statements []string
}

func (c ownSession) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if isContext(err) && ctx.Err() == nil { // the timeout of the DSN ended, and the caller's context did not
		return nil, fmt.Errorf("%s: %w", err.Error(), os.ErrDeadlineExceeded)
	}
	if err != nil {
		return nil, err
	}
	for _, statement := range c.statements {
		//nolint:forcetypeassert // the driver's connections do
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, statement, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// SQLite opens the database in a file. If the file does not exist, it is created with mode 0600; its folder must exist.
// The files that SQLite keeps beside it get the same mode. Several processes may open the file.
func SQLite(ctx context.Context, path string, o Options) (*Store, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("database settings: sqlite path %q: %w", path, err)
	}
	params := url.Values{
		"_pragma": {
			"busy_timeout(5000)",           // milliseconds
			"journal_mode(WAL)",            // readers do not block the writer
			"synchronous(NORMAL)",          // survives a killed process; a power cut may take the last commits
			"journal_size_limit(16777216)", // bytes; a long read makes the file of the journal grow, which would keep its size
		},
		// A transaction takes the write lock when it begins. At the first write, it would not get the lock if another
		// transaction had written since the first read.
		"_txlock": {"immediate"},
	}
	// In a URI, the path may have any character: '?', '#' and '%' are escaped.
	connector, err := sqlite.NewConnector((&url.URL{Scheme: "file", Path: absolute, RawQuery: params.Encode()}).String())
	if err != nil {
		return nil, err
	}
	// SQLite itself would create the file readable for every user.
	file, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_ = file.Close() // nothing was written
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("sqlite file: %w", err)
	}
	opened, err := os.Stat(absolute)
	if err != nil {
		return nil, fmt.Errorf("sqlite file: %w", err)
	}
	s := &Store{
		pool:   o.pool(connector, 4), // one writes; the others wait in the pool's queue, because the file's lock has no queue
		name:   "sqlite file " + path,
		hosts:  []string{"file"},
		sqlite: true,
		path:   absolute,
		file:   opened,
		clock:  "strftime('%Y-%m-%d %H:%M:%f000', 'now')", // its precision is milliseconds
	}
	return s.connect(ctx, sqliteDialect{gormmysql.New(gormmysql.Config{}), s.pool})
}

// sqliteDialect is a gorm dialect for SQLite, which accepts MySQL's quotes and placeholders. gorm's own dialect imports
// a driver that needs a C compiler. Migrator and DataTypeOf stay MySQL's, because goose migrates.
type sqliteDialect struct {
	gorm.Dialector // MySQL's
	pool           *sql.DB
}

func (sqliteDialect) Name() string { return "sqlite" }

func (d sqliteDialect) Initialize(db *gorm.DB) error {
	db.ConnPool = d.pool
	callbacks.RegisterDefaultCallbacks(db, &callbacks.Config{})
	db.ClauseBuilders[gormmysql.ClauseFor] = func(clause.Clause, clause.Builder) {} // no FOR UPDATE: SQLite has no row locks
	return nil
}

// pool returns a pool of connections, without opening one.
func (o Options) pool(c driver.Connector, conns int) *sql.DB {
	open := sql.OpenDB
	if o.Through != nil {
		open = o.Through
	}
	pool := open(c)
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns) // an idle connection costs less than a new one
	return pool
}

// connect waits for the database's first answer and sets up gorm. On an error it closes the pool.
func (s *Store) connect(ctx context.Context, dialect gorm.Dialector) (*Store, error) {
	s.full, s.counts = new(atomic.Pointer[diskFull]), make(chan struct{}, 1)
	err := s.Await(ctx, func(ctx context.Context) error { return failed(s.ask(ctx), "%s", s.name) })
	if err == nil {
		s.db, err = gorm.Open(dialect, &gorm.Config{
			SkipDefaultTransaction: true,  // a single statement is atomic by itself
			PrepareStmt:            false, // the driver's interpolation saves the same round trips
			DisableAutomaticPing:   true,
			Logger:                 logger.Discard, // errors are returned
		})
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Await asks the database until it answers, waiting cannot help, or ctx ends. The error of ask names the database.
func (s *Store) Await(ctx context.Context, ask func(context.Context) error) error {
	began := time.Now()
	var cause error
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second) // for an address that drops packets
		err := ask(attempt)
		cancel()
		if err == nil {
			return nil
		}
		if cause == nil || ctx.Err() == nil { // if ctx ended the attempt, its error explains nothing
			cause = err
		}
		if ctx.Err() == nil && !mayRecover(err) {
			return err
		}
		if order.Pause(ctx, pause) != nil {
			return fmt.Errorf("the database did not answer for %v: %w, last error: %w; check that it runs, and the address",
				time.Since(began).Round(10*time.Millisecond), ended(ctx), cause)
		}
	}
}

// ask returns an error if the server does not answer, or cannot keep the shop's promises. The shop needs the collation
// utf8mb4_0900_bin, which MySQL has from 8.0.17 on, and SKIP LOCKED, which MariaDB has from 10.6 on.
func (s *Store) ask(ctx context.Context) error {
	if s.sqlite {
		return s.pool.PingContext(ctx)
	}
	var version string
	var rollsBack bool
	query := "SELECT VERSION(), @@innodb_rollback_on_timeout"
	if err := s.pool.QueryRowContext(ctx, query).Scan(&version, &rollsBack); err != nil {
		return err
	}
	if rollsBack {
		return errors.New("innodb_rollback_on_timeout of the server is ON: want OFF, because a transaction goes on " +
			"after waiting in vain for a locked row")
	}
	return supported(version)
}

func supported(version string) error {
	least := []int{8, 0, 17}
	if strings.Contains(version, "MariaDB") {
		least = []int{10, 6, 0}
	}
	is := make([]int, 3)
	_, _ = fmt.Sscanf(version, "%d.%d.%d", &is[0], &is[1], &is[2]) // a number that cannot be read stays 0
	if slices.Compare(is, least) < 0 {
		return fmt.Errorf("the server's version is %s: want MySQL from 8.0.17 on, or MariaDB from 10.6 on", version)
	}
	return nil
}

// mayRecover reports whether a failed question may succeed later: not after a definite answer, such as
// that the server is read-only, or a failed TLS handshake.
func mayRecover(err error) bool {
	if none, ok := errors.AsType[noPrimaryError](err); ok {
		return none.mayRecover
	}
	return (unavailable(err) || isContext(err)) && !slices.Contains(readOnly, mysqlNumber(err)) &&
		!errors.Is(err, mysql.ErrNoTLS) && !strings.Contains(err.Error(), "tls: ")
}

package app

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/order/orderstore"
	"example.com/shop/internal/stock/stockstore"
	"example.com/shop/internal/store"
)

// Database is the shop's database, for commands that need nothing else.
type Database struct {
	db     *gorm.DB
	sqlite bool
	name   string // for messages, without a password
}

// OpenDatabase waits until the database of s answers or ctx or s.StartTimeout
// ends.
func OpenDatabase(ctx context.Context, s Settings) (*Database, error) {
	return openDatabase(ctx, s, store.Pool{})
}

// openDatabase is OpenDatabase with so many connections to a server; a file has its
// own number.
func openDatabase(ctx context.Context, s Settings, connections store.Pool, options ...store.Option) (*Database, error) {
	if err := s.ValidateDatabase(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.StartTimeout)
	defer cancel()
	if s.MySQL == "" {
		db, err := store.SQLite(ctx, s.SQLite, options...)
		if err != nil {
			return nil, err
		}
		return &Database{db: db, sqlite: true, name: "sqlite file " + s.SQLite}, nil
	}
	dsn, err := readDSN(s.MySQL)
	if err != nil {
		return nil, err
	}
	secure, err := mysqlTLS(s)
	if err != nil {
		return nil, err
	}
	defer s.announce("mysql at " + dsn.Address())()
	db, err := store.MySQLOverTLS(ctx, s.MySQL, secure, connections, options...)
	if err != nil {
		return nil, fmt.Errorf("%w (--mysql, SHOP_MYSQL%s)", err, whichCA(err, "--mysql-ca, SHOP_MYSQL_CA"))
	}
	return &Database{db: db, name: fmt.Sprintf("mysql at %s, database %s", dsn.Address(), dsn.Database())}, nil
}

// Name tells which database it is, without a password.
func (d *Database) Name() string { return d.name }

// Migrate brings the schema up to date and returns how many steps that took.
func (d *Database) Migrate(ctx context.Context) (applied int, err error) {
	applied, err = store.Migrate(ctx, d.db)
	if err != nil {
		return applied, fmt.Errorf("migrate %s: %w", d.name, err)
	}
	return applied, nil
}

// Prepare migrates a SQLite file, and refuses a server whose schema is old: who
// migrates a server that others use must mean it.
func (d *Database) Prepare(ctx context.Context) error {
	if d.sqlite {
		_, err := d.Migrate(ctx)
		return err
	}
	return d.UpToDate(ctx)
}

// UpToDate refuses an old schema.
func (d *Database) UpToDate(ctx context.Context) error {
	pending, err := store.Pending(ctx, d.db)
	if err != nil {
		return fmt.Errorf("schema of %s: %w", d.name, err)
	}
	if pending {
		return fmt.Errorf("%s: its schema is not up to date: run `shop migrate` on it first", d.name)
	}
	return nil
}

// Ping asks whether the database answers. It stands in line for one of this pool's
// connections like everybody else.
func (d *Database) Ping(ctx context.Context) error {
	pool, err := d.db.DB()
	if err != nil {
		return err
	}
	return pool.PingContext(ctx)
}

// Stock returns the store of SKUs.
func (d *Database) Stock() *stockstore.Store { return stockstore.New(d.db) }

// Orders returns the store of orders, which audits too.
func (d *Database) Orders() *orderstore.Store { return orderstore.New(d.db) }

// headStarts is how many of the connections may be kept by lanes that wait for their
// lease: so few that whoever holds one gets a connection. A SQLite file has one writer.
func (d *Database) headStarts() int {
	pool, err := d.db.DB()
	if err != nil || d.sqlite {
		return 0
	}
	return pool.Stats().MaxOpenConnections / 4
}

// Close gives the connections back.
func (d *Database) Close() error { return store.Close(d.db) }

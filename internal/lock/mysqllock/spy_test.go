package mysqllock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// spy is a connector that notes every statement with its arguments.
type spy struct {
	driver.Connector

	mu    sync.Mutex
	calls []call

	afterQuery func(statement string) // called when the server has answered
}

type call struct {
	statement string
	args      []any
}

// spied returns a pool whose statements are noted.
func spied(t testing.TB, dsn string) (*sql.DB, *spy) {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &spy{Connector: connector}
	db := sql.OpenDB(s)
	closeLater(t, db)
	return db, s
}

func (s *spy) all() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *spy) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return spiedConn{conn.(driverConn), s}, nil
}

// driverConn is what database/sql uses of the driver's connections.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Validator
}

type spiedConn struct {
	driverConn
	spy *spy
}

func (c spiedConn) note(statement string, args []driver.NamedValue) {
	c.spy.mu.Lock()
	defer c.spy.mu.Unlock()
	noted := call{statement: statement}
	for _, a := range args {
		noted.args = append(noted.args, a.Value)
	}
	c.spy.calls = append(c.spy.calls, noted)
}

func (c spiedConn) ExecContext(ctx context.Context, s string, args []driver.NamedValue) (driver.Result, error) {
	c.note(s, args)
	return c.driverConn.ExecContext(ctx, s, args)
}

func (c spiedConn) QueryContext(ctx context.Context, s string, args []driver.NamedValue) (driver.Rows, error) {
	c.note(s, args)
	rows, err := c.driverConn.QueryContext(ctx, s, args)
	if f := c.spy.afterQuery; f != nil && err == nil {
		f(s)
	}
	return rows, err
}

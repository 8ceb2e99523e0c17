package lab

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"regexp"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/go-sql-driver/mysql"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Database returns open, which makes a pool of connections, with their statements recorded.
func (r *Recorder) Database(open func(driver.Connector) *sql.DB) func(driver.Connector) *sql.DB {
	return func(c driver.Connector) *sql.DB { return open(connector{c, r}) }
}

type connector struct {
	driver.Connector
	recorder *Recorder
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{opened.(fullConn), c.recorder}, nil //nolint:forcetypeassert // the drivers' connections are
}

// fullConn is what the drivers of both databases have.
type fullConn interface {
	driver.Conn
	driver.Pinger
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// conn records. What it does not have itself, database/sql does in its usual way.
type conn struct {
	fullConn
	recorder *Recorder
}

func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if level, chosen := ctx.Value(levelKey{}).(sql.IsolationLevel); chosen {
		o.Isolation = driver.IsolationLevel(level)
	}
	all, _ := c.recorder.of(ctx)
	if all == nil {
		return c.fullConn.BeginTx(ctx, o)
	}
	answer, err := all.command(ctx, KindSQL, "BEGIN", true)
	if err != nil {
		return nil, err
	}
	begun, err := c.fullConn.BeginTx(ctx, o)
	answer(sqlAnswer(err, "OK"))
	return tx{begun, context.WithValue(ctx, lineKey{}, sourceLine()), all}, err // a COMMIT may come from another goroutine
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	answer, err := c.note(ctx, query, args)
	if err != nil {
		return nil, err
	}
	result, err := c.fullConn.ExecContext(ctx, query, args)
	var rows int64
	if err == nil {
		rows, _ = result.RowsAffected() // both drivers know
	}
	answer(sqlAnswer(err, english.Plural(int(rows), "row", "")))
	return result, err
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	answer, err := c.note(ctx, query, args)
	if err != nil {
		return nil, err
	}
	rows, err := c.fullConn.QueryContext(ctx, query, args)
	answer(sqlAnswer(err, "OK"))
	return rows, err
}

// note records a statement, and returns a function that adds its answer. An error means that the
// statement may not be sent.
func (c *conn) note(ctx context.Context, query string, args []driver.NamedValue) (answer func(string), err error) {
	values := make([]any, len(args))
	for i, a := range args {
		values[i] = a.Value
	}
	all, own := c.recorder.of(ctx, values...)
	if all == nil {
		return func(string) {}, nil
	}
	text := statementText(query, values)
	// All other rows that a purchase reads and writes are its buyer's alone.
	shared := strings.Contains(text, " skus ") || strings.Contains(text, " wrong_locks ") ||
		endsOrders.MatchString(text) || strings.Contains(text, "_LOCK(")
	return all.command(ctx, KindSQL, text, own && shared)
}

// endsOrders matches how orders that are due are found, and how orders end.
var endsOrders = regexp.MustCompile(`^SELECT .* FROM orders WHERE \(?status |^UPDATE orders `)

// tx knows its requests: a COMMIT is given no context.
type tx struct {
	driver.Tx
	ctx context.Context //nolint:containedctx // see above
	all traces
}

func (t tx) Commit() error {
	answer, err := t.all.command(t.ctx, KindSQL, "COMMIT", true)
	if err != nil {
		return errors.Join(err, t.Rollback()) // as the server does when the connection is gone
	}
	err = t.Tx.Commit()
	answer(sqlAnswer(err, "OK"))
	return err
}

// Rollback implements driver.Tx. It is sent also if the request has died: see Commit.
func (t tx) Rollback() error {
	answer := t.all.add(KindSQL, "ROLLBACK", "")
	err := t.Tx.Rollback()
	answer(sqlAnswer(err, "OK"))
	return err
}

func sqlAnswer(err error, good string) string {
	switch {
	case isDuplicate(err):
		return "duplicate key"
	case err != nil:
		return short(err)
	}
	return good
}

func isDuplicate(err error) bool {
	server, _ := errors.AsType[*mysql.MySQLError](err)
	file, _ := errors.AsType[*sqlite.Error](err)
	return server != nil && server.Number == 1062 || file != nil && file.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

var comment = regexp.MustCompile(`/\*.*?\*/`)

// statementText is a statement on one line, its values in place, without what is the same in all statements of its
// kind: comments, and the list of columns that are read or inserted.
func statementText(query string, args []any) string {
	query = strings.ReplaceAll(comment.ReplaceAllString(query, ""), "`", "")
	text := ""
	for i, part := range strings.Split(query, "?") {
		text += part
		if i < len(args) {
			text += short(args[i])
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	switch verb, rest, _ := strings.Cut(text, " "); {
	case strings.EqualFold(verb, "SELECT"):
		if _, from, found := strings.Cut(rest, " FROM "); found {
			text = "SELECT … FROM " + from
		}
	case strings.EqualFold(verb, "INSERT") && !strings.Contains(text, " wrong_locks "):
		text, _, _ = strings.Cut(text, " (")
	}
	const most = 200
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	return text
}

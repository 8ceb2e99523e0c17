package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	gosqlite "github.com/glebarez/go-sqlite"
	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
)

// sqliteConns is how many connections share a file. SQLite has one writer at a
// time; writers beyond these wait in the pool, in order, rather than at the
// file, where who comes next is a matter of luck.
const sqliteConns = 4

// SQLite opens the database in a file, which is made if it is not there; its
// folder must be. It is made with mode 0600, and what SQLite keeps beside it has the
// same. Several processes may have it open.
func SQLite(ctx context.Context, path string, options ...Option) (*gorm.DB, error) {
	dsn, err := sqliteDSN(path)
	if err != nil {
		return nil, err
	}
	if err := makeFile(path); err != nil {
		return nil, fmt.Errorf("sqlite file %s: %w", path, err)
	}
	conns := opener(options)(sqliteFile(dsn))
	conns.SetMaxOpenConns(sqliteConns)
	conns.SetMaxIdleConns(sqliteConns)
	busy := func(err error) bool { return Classify(err) == Conflict } // others are opening it, too
	if err := await(ctx, "sqlite file "+path, conns.PingContext, busy); err != nil {
		return nil, errors.Join(err, conns.Close())
	}
	db, err := gorm.Open(sqlite.Dialector{Conn: conns}, gormConfig())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite file %s: %w", path, err), conns.Close())
	}
	return db, nil
}

// makeFile makes an empty database where there is none, for its owner alone: SQLite
// itself lets everybody read. It opens nothing under the file's own name: to close
// that would end the locks which this process has on it.
func makeFile(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil // what is wrong with it, SQLite says
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-*.db") // mode 0600
	if err != nil {
		return err
	}
	err = os.Link(f.Name(), path)
	if errors.Is(err, fs.ErrExist) { // another shop was as fast
		err = nil
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// sqliteDSN returns the URI of a file. As a URI, the path may hold any
// character: '?', '#' and '%' are escaped.
func sqliteDSN(path string) (string, error) {
	switch {
	case path == "":
		return "", fmt.Errorf("%w: sqlite path is empty", ErrSettings)
	case path == ":memory:" || strings.HasPrefix(path, "file:"):
		return "", fmt.Errorf("%w: sqlite path %q: want the path of a file", ErrSettings, path)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%w: sqlite path %q: %w", ErrSettings, path, err)
	}
	params := url.Values{
		"_pragma": {
			fmt.Sprintf("busy_timeout(%d)", (5 * time.Second).Milliseconds()),
			"journal_mode(WAL)",   // readers do not block the writer
			"synchronous(NORMAL)", // survives a killed process; a power cut may take the last commits
		},
		// A transaction takes the right to write when it begins. Taking it at the
		// first write fails if another one wrote since the first read.
		"_txlock": {"immediate"},
	}
	file := url.URL{Scheme: "file", Path: filepath.ToSlash(absolute), RawQuery: params.Encode()}
	return file.String(), nil
}

// sqliteFile is the driver.Connector of the file with this DSN.
type sqliteFile string

// Connect implements driver.Connector.
func (f sqliteFile) Connect(context.Context) (driver.Conn, error) { return f.Driver().Open(string(f)) }

// Driver implements driver.Connector.
func (sqliteFile) Driver() driver.Driver { return &gosqlite.Driver{} }

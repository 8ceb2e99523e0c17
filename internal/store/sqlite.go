package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
)

// sqliteConns is how many connections share a file. SQLite has one writer at a
// time; writers beyond these wait in the pool, in order, rather than at the
// file, where who comes next is a matter of luck.
const sqliteConns = 4

// SQLite opens the database in a file, which is made if it is not there; its
// folder must be. Several processes may have it open.
func SQLite(ctx context.Context, path string) (*gorm.DB, error) {
	dsn, err := sqliteDSN(path)
	if err != nil {
		return nil, err
	}
	conns, err := sql.Open(sqlite.DriverName, dsn)
	if err != nil {
		return nil, fmt.Errorf("sqlite file %s: %w", path, err)
	}
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

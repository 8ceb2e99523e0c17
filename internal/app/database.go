package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"example.com/shop/internal/store"
)

// OpenDatabase waits until the database answers or ctx or s.StartTimeout ends.
func OpenDatabase(ctx context.Context, s DatabaseSettings) (*store.Store, error) {
	return openStore(ctx, s, store.Options{})
}

func openStore(ctx context.Context, s DatabaseSettings, o store.Options) (*store.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, s.StartTimeout)
	defer cancel()
	if s.MySQL == "" {
		return store.SQLite(ctx, DatabaseFile(s.Data), o)
	}
	address, err := MySQLAddress(s.MySQL)
	if err != nil {
		return nil, err
	}
	if o.TLS, err = s.mysqlTLS().config(); err != nil {
		return nil, err
	}
	defer s.Announce("mysql at " + address)()
	db, err := store.MySQL(ctx, s.MySQL, o)
	if err != nil {
		return nil, fmt.Errorf("%w (--mysql, SHOP_MYSQL; TLS: --mysql-ca, SHOP_MYSQL_CA)", err)
	}
	return db, nil
}

// Prepare migrates a SQLite file, and refuses a server whose schema is old or not the shop's: other instances use that
// server, so the operator runs `shop migrate`.
func Prepare(ctx context.Context, db *store.Store) error {
	if db.IsSQLite() {
		if _, err := db.Migrate(ctx); err != nil {
			return fmt.Errorf("%s: %w", db.Name(), err)
		}
		return nil
	}
	return UpToDate(ctx, db)
}

// UpToDate returns an error if the database's schema is old or not the shop's.
func UpToDate(ctx context.Context, db *store.Store) error {
	pending, err := db.Pending(ctx)
	if err == nil && pending {
		err = errors.New("its schema is not up to date: run `shop migrate` on it first")
	}
	if err == nil {
		err = db.CheckSchema(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", db.Name(), err)
	}
	return nil
}

// MySQLAddress returns the host:port/database of a DSN, without user and password; several hosts with commas.
func MySQLAddress(dsn string) (string, error) {
	configs, err := store.ReadDSN(dsn)
	if err != nil {
		return "", fmt.Errorf("mysql: %w", err)
	}
	var hosts []string
	for _, c := range configs {
		hosts = append(hosts, c.Addr)
	}
	return strings.Join(hosts, ",") + "/" + configs[0].DBName, nil
}

// Announce logs that the shop waits for a server, if that takes longer than a running server needs. The caller calls
// over when the wait has ended.
func (s DatabaseSettings) Announce(server string) (over func()) {
	t := time.AfterFunc(200*time.Millisecond, func() {
		s.log().Info("waiting for "+server, "at_most", s.StartTimeout)
	})
	return func() { t.Stop() }
}

// keepFolder refuses a second shop on a folder if the locks and rate limits of one of the two are in its process, until the
// first has called release or its process has ended.
func keepFolder(data string, shared bool) (release func() error, err error) {
	file := flock.New(filepath.Join(data, "serving"), flock.SetPermissions(0o600))
	try := file.TryLock
	if shared {
		try = file.TryRLock
	}
	switch ok, err := try(); {
	case err != nil:
		return nil, fmt.Errorf("data folder: %w", err)
	case !ok:
		return nil, fmt.Errorf("another shop serves %s, and one of the two has locks of its own: give both one --redis, or stop it", data)
	}
	return file.Close, nil
}

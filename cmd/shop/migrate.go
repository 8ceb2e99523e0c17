package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/dustin/go-humanize/english"

	"example.com/shop/internal/app"
	"example.com/shop/internal/store"
)

type migrateCommand struct {
	app.DatabaseSettings `embed:""`
}

func (migrateCommand) Help() string {
	return `Run it once before the first "shop serve --mysql", and after each update. Running it again is safe, also
after it was killed. On a server, Ctrl-C waits until it is done; a second one kills it.

Example:
  shop migrate --mysql 'shop:secret@tcp(db:3306)/shop'
  shop migrate --mysql 'shop:secret@tcp(db1:3306,db2:3306,db3:3306)/shop'    on the one that takes writes`
}

func (m *migrateCommand) Run(ctx context.Context, p *program) (err error) {
	m.Log = p.log
	database, err := openDatabase(ctx, true, m.DatabaseSettings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	applied, err := database.Migrate(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", database.Name(), err)
	}
	fmt.Fprintf(p.stdout, "%s: the schema took %s and is up to date\n", database.Name(), english.Plural(applied, "step", ""))
	return nil
}

// openDatabase opens the database of a command. With create it creates the data folder; without, a folder without a
// shop is an error.
func openDatabase(ctx context.Context, create bool, s app.DatabaseSettings) (*store.Store, error) {
	if err := s.Check(); err != nil {
		return nil, usageError{err}
	}
	switch {
	case s.Data == "":
	case create:
		if err := os.MkdirAll(s.Data, 0o750); err != nil {
			return nil, fmt.Errorf("data folder: %w", err)
		}
	default:
		if _, err := os.Stat(app.DatabaseFile(s.Data)); err != nil {
			return nil, fmt.Errorf("no shop in %s: %w; check --data", s.Data, err)
		}
	}
	return app.OpenDatabase(ctx, s)
}

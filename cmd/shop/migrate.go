package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize/english"
)

type migrateCommand struct {
	databaseFlags `embed:""`
}

// Help is shown below the flags.
func (migrateCommand) Help() string {
	return `Run it once before the first "shop serve --mysql", and after each update. Running it again is safe, also
after it was killed. On a server, Ctrl-C waits until it is done; a second one kills it.

Example:
  shop migrate --mysql 'shop:secret@tcp(db:3306)/shop'`
}

// Run migrates.
func (m *migrateCommand) Run(ctx context.Context, p *program) (err error) {
	if err := m.check(); err != nil {
		return usage("migrate", err)
	}
	database, err := m.create(ctx, p.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	applied, err := database.Migrate(ctx)
	if err != nil {
		return err
	}
	if applied == 0 {
		fmt.Fprintf(p.stdout, "%s: the schema is up to date\n", database.Name())
		return nil
	}
	fmt.Fprintf(p.stdout, "%s: the schema took %s and is up to date\n", database.Name(), english.Plural(applied, "step", ""))
	return nil
}

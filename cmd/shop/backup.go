package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"example.com/shop/internal/app"
)

type backupCommand struct {
	To   string `arg:"" name:"file" help:"File to write, which must not exist yet."`
	Data string `required:"" env:"SHOP_DATA" placeholder:"DIR" help:"Folder of the shop whose database is copied."`
}

func (backupCommand) Help() string {
	return `The copy has all orders up to one moment. The shop may go on selling meanwhile, or be stopped. FILE is there when it is whole and on disk, with mode 0600, or not at all, and nothing is overwritten. Copying shop.db itself loses the newest orders, which are in shop.db-wal.

To restore, put the copy into an empty folder as shop.db, with token.secret and operator.token of the old one: docs/operations.md shows how. For a MySQL use its own tools, such as mysqldump --single-transaction.

Example:
  shop backup --data ./data monday.db`
}

func (b *backupCommand) Run(ctx context.Context, p *program) (err error) {
	settings := app.Default().DatabaseSettings
	settings.Data, settings.Log = b.Data, p.log
	database, err := openDatabase(ctx, false, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	err = database.BackUp(ctx, b.To)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("backup: %s is there already, and nothing is overwritten: name another file", b.To)
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	fmt.Fprintf(p.stdout, "%s is a copy of the %s\n", b.To, database.Name())
	return nil
}

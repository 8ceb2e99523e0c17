package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"

	"example.com/shop/internal/app"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

// open opens the database of a command. With create, it makes the data folder; without, a folder
// without a shop is an error.
func (p *program) open(ctx context.Context, create bool, s app.DatabaseSettings, steps ...app.Step) (*store.Store, error) {
	s.Log = p.log
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
	return app.OpenDatabase(ctx, s, steps...)
}

type migrateCommand struct {
	app.DatabaseSettings `embed:""`
}

func (migrateCommand) Help() string {
	return `Run this command once before the first "shop serve --mysql", and after each update of the shop. Running it again is
always safe, even if it was killed. On a server, Ctrl-C waits for a migration that runs; a second Ctrl-C kills the command.

The shop may go on selling. If another session, such as a dump, uses a table that a migration changes, orders wait for up to two
seconds at a time: the command tries again for --start-timeout, and reports the session with the oldest transaction. This report needs the
privilege PROCESS. If the command gives up, nothing stays behind on the server: end the session, or run the command again later.

Example:
  shop migrate --mysql 'shop:secret@tcp(db:3306)/shop'
  shop migrate --mysql 'shop:secret@tcp(db1:3306,db2:3306,db3:3306)/shop'    on the host that takes writes`
}

func (m *migrateCommand) Run(ctx context.Context, p *program) error {
	database, err := p.open(ctx, true, m.DatabaseSettings)
	if err != nil {
		return err
	}
	defer database.Close()
	patience, cancel := context.WithTimeout(ctx, m.StartTimeout)
	defer cancel()
	applied, err := database.Migrate(ctx)
	for pause := time.Second; errors.Is(err, store.ErrTableInUse); pause = min(2*pause, 8*time.Second) { // orders go on in the pause
		p.log.Warn("the schema cannot be changed yet", "again_in", pause, "error", err)
		if order.Pause(patience, pause) != nil {
			break
		}
		applied, err = database.Migrate(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", database.Name(), err)
	}
	fmt.Printf("%s: the schema took %s and is up to date\n", database.Name(), english.Plural(applied, "step", ""))
	return nil
}

type seedCommand struct {
	SKU                  []string `name:"sku" placeholder:"NAME" sep:"none" help:"Name of a SKU to create. Repeat --sku and --units for more SKUs."`
	Units                []int64  `placeholder:"N" sep:"none" help:"Units to supply: the first --units is for the first --sku, and so on."`
	Price                int64    `default:"1000" help:"Price of one unit, in the minor unit of the currency (cents)."`
	Currency             string   `default:"EUR" help:"Currency of the price, three capital letters."`
	LimitPerBuyer        int64    `placeholder:"N" help:"Units of each SKU that one buyer may have in pending and paid orders. 0, the default, sets no limit."`
	app.DatabaseSettings `embed:""`
}

func (seedCommand) Help() string {
	return `If one of the SKUs already exists, none is created and nothing changes.

Examples:
  shop seed --data ./data --sku mug --units 100
  shop seed --data ./data --sku print --units 50 --limit-per-buyer 2
  shop seed --mysql 'shop:secret@tcp(db:3306)/shop' --sku mug --units 100 --sku shirt --units 25 --price 1900`
}

func (s *seedCommand) Run(ctx context.Context, p *program) error {
	skus, err := s.skus(time.Now())
	if err != nil {
		return app.UsageError{Err: err}
	}
	database, err := p.open(ctx, true, s.DatabaseSettings, app.Prepare)
	if err != nil {
		return err
	}
	defer database.Close()
	if err := database.Create(ctx, skus...); err != nil {
		return err
	}
	for _, sku := range skus {
		limit := ""
		if sku.LimitPerBuyer > 0 {
			limit = fmt.Sprintf(", %d for each buyer", sku.LimitPerBuyer)
		}
		fmt.Printf("%s: %s at %d minor units of %s%s\n", sku.Name, english.Plural(int(sku.Supplied), "unit", ""),
			sku.Price.Minor, sku.Price.Currency, limit)
	}
	return nil
}

// skus pairs names and units in the order in which they were typed.
func (s *seedCommand) skus(now time.Time) ([]stock.SKU, error) {
	if len(s.SKU) == 0 {
		return nil, errors.New("which SKUs? Add --sku NAME --units N, once for each SKU")
	}
	if err := stock.CheckLimit(s.LimitPerBuyer); err != nil {
		return nil, err
	}
	if len(s.SKU) != len(s.Units) {
		return nil, fmt.Errorf("got %d --sku and %d --units: want one of each for every SKU", len(s.SKU), len(s.Units))
	}
	skus := make([]stock.SKU, len(s.SKU))
	for i, name := range s.SKU {
		if slices.Index(s.SKU, name) < i {
			return nil, fmt.Errorf("--sku %s is given twice", name)
		}
		sku, err := stock.NewSKU(name, stock.Money{Minor: s.Price, Currency: s.Currency}, s.Units[i], now)
		if err != nil {
			return nil, err
		}
		sku.LimitPerBuyer = s.LimitPerBuyer
		skus[i] = sku
	}
	return skus, nil
}

// prepareFolder creates the data folder of a shop and its database, with demo SKUs if it has no SKU.
func (p *program) prepareFolder(ctx context.Context, s app.DatabaseSettings) error {
	database, err := p.open(ctx, true, s, app.Prepare)
	if err != nil {
		return err
	}
	defer database.Close()
	found, err := database.List(ctx, "", 1)
	if err != nil || len(found) > 0 {
		return err
	}
	demo := seedCommand{SKU: []string{"demo-mug", "demo-shirt", "demo-print"}, Units: []int64{1_000, 100, 1}, Price: 1250, Currency: "EUR"}
	skus, _ := demo.skus(time.Now()) // they are valid
	// Another shop on the same folder may create the same SKUs at the same time.
	if err := database.Create(ctx, skus...); !errors.Is(err, order.ErrExists) {
		return err
	}
	return nil
}

type backupCommand struct {
	To   string `arg:"" name:"file" help:"File to write. It must not exist yet."`
	Data string `required:"" env:"SHOP_DATA" placeholder:"DIR" help:"Data folder of the shop."`
}

func (backupCommand) Help() string {
	return `The copy has all orders up to one moment. The shop may be stopped, or go on selling. FILE appears, with mode
0600, once the copy is complete and on disk; nothing is overwritten. Do not copy shop.db itself: the newest orders are
in shop.db-wal.

To restore, put the copy into an empty folder as shop.db, together with token.secret, operator.token and
payments.token of the old folder: docs/operations.md shows how. For MySQL, use its own tools, such as mysqldump
--single-transaction.

Example:
  shop backup --data ./data monday.db`
}

func (b *backupCommand) Run(ctx context.Context, p *program) error {
	settings := app.Default().DatabaseSettings
	settings.Data = b.Data
	database, err := p.open(ctx, false, settings)
	if err != nil {
		return err
	}
	defer database.Close()
	err = database.BackUp(ctx, b.To)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("backup: %s already exists and is not overwritten: name another file", b.To)
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	fmt.Printf("%s is a copy of the %s\n", b.To, database.Name())
	return nil
}

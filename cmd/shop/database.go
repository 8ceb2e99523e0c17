package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"example.com/shop/internal/app"
)

// databaseFlags say which database a command works on.
type databaseFlags struct {
	MySQL         string `name:"mysql" placeholder:"DSN" help:"MySQL or MariaDB: user:password@tcp(host:3306)/database." variable:"SHOP_MYSQL" rival:"data"`
	Data          string `placeholder:"DIR" help:"Folder of a shop without MySQL: its SQLite file is kept there." variable:"SHOP_DATA" rival:"mysql"`
	mysqlTLSFlags `embed:""`
	StartTimeout  time.Duration `default:"30s" help:"How long to wait for servers that do not answer yet: 1ms to 15m." variable:"SHOP_START_TIMEOUT"`
}

// settings returns the part of a shop's settings that the flags make.
func (f databaseFlags) settings() app.Settings {
	s := app.Default()
	s.MySQL = f.MySQL
	s.MySQLTLS = f.mysqlTLS()
	s.StartTimeout = f.StartTimeout
	if f.Data != "" {
		s.SQLite = app.DatabaseFile(f.Data)
	}
	return s
}

// check finds what is wrong with the flags of a command that needs a database.
func (f databaseFlags) check() error {
	if f.MySQL == "" && f.Data == "" {
		return errors.New("which database? Add --mysql DSN or --data DIR")
	}
	if err := f.both(); err != nil {
		return err
	}
	return f.settings().ValidateDatabase()
}

// both refuses two databases. One that was typed stands before the variable of
// the other.
func (f databaseFlags) both() error {
	if f.MySQL != "" && f.Data != "" {
		return errors.New("--mysql (SHOP_MYSQL) and --data (SHOP_DATA): want one database, not both")
	}
	return nil
}

// open waits for the database. Only a command that makes the data folder itself
// may be given one that does not exist.
func (f databaseFlags) open(ctx context.Context, log *slog.Logger) (*app.Database, error) {
	s := f.settings()
	s.Log = log
	if s.SQLite != "" {
		if _, err := os.Stat(s.SQLite); err != nil {
			return nil, fmt.Errorf("no shop in %s: %w; check --data", f.Data, err)
		}
	}
	return app.OpenDatabase(ctx, s)
}

// create is open for commands that begin a shop: it makes the data folder.
func (f databaseFlags) create(ctx context.Context, log *slog.Logger) (*app.Database, error) {
	if f.Data != "" {
		if err := os.MkdirAll(f.Data, 0o750); err != nil {
			return nil, fmt.Errorf("data folder: %w", err)
		}
	}
	s := f.settings()
	s.Log = log
	return app.OpenDatabase(ctx, s)
}

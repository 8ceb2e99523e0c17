package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"example.com/shop/loadtest/sale/process"
	"example.com/shop/loadtest/sale/source"
)

// instances is how many shops stand beside each other.
const instances = 3

// site is where a run takes place: the servers and what starts shops on them.
type site struct {
	shop      string // program
	flags     []string
	variables []string
	size      int // of the answers of nothing, in bytes

	redis, database string // for people
	undo            []func() error
}

// open builds the shop, starts the servers and brings the schema up to date.
// Close what it returns, also after an error.
func open(ctx context.Context, f flags, say func(string)) (*site, error) {
	s := &site{shop: f.Shop}
	dir, err := os.MkdirTemp("", "shop-sale-")
	if err != nil {
		return s, err
	}
	s.later(func() error { return os.RemoveAll(dir) })
	if s.shop == "" {
		say("building the shop")
		s.shop = filepath.Join(dir, "shop")
		build := exec.CommandContext(ctx, "go", "build", "-o", s.shop, "example.com/shop/cmd/shop") //nolint:gosec // into a folder that was made above
		if out, err := build.CombinedOutput(); err != nil {
			return s, fmt.Errorf("go build: %w: %s", err, out)
		}
	}
	say("starting Redis and the database")
	redis, err := source.OpenRedis(ctx, f.Redis, dir)
	if err != nil {
		return s, err
	}
	s.later(redis.Stop)
	s.redis = redis.About
	s.flags = append([]string{
		"serve", "--lab", "--listen=127.0.0.1:0", "--log-level=warn", "--reconcile-at=off", "--drain=5s", "--pay-within=24h",
		"--max-in-flight=20000", "--lock-wait=90s",
	}, f.ShopFlag...)
	s.variables = []string{"SHOP_REDIS=" + redis.Addr} // not flags: they may hold a password
	return s, s.openDatabase(ctx, f, dir)
}

func (s *site) openDatabase(ctx context.Context, f flags, dir string) error {
	if f.Database == "sqlite" {
		s.database = "SQLite, one file for all shops, embedded (synchronous=NORMAL: a power cut may take the last commits)"
		s.variables = append(s.variables, "SHOP_DATA="+dir)
	} else {
		sql, err := source.OpenSQL(ctx, f.MySQL, f.Database == "mariadb")
		if err != nil {
			return err
		}
		s.later(sql.Stop)
		s.database = sql.About
		s.variables = append(s.variables, "SHOP_MYSQL="+sql.DSN)
	}
	migrate := exec.CommandContext(ctx, s.shop, "migrate") //nolint:gosec // the program that was built or named
	migrate.Env = append(os.Environ(), s.variables...)
	if out, err := migrate.CombinedOutput(); err != nil {
		return fmt.Errorf("shop migrate: %w: %s", err, out)
	}
	return nil
}

// share gives one of n processes beside each other its part of the processors that this
// one may use: each of them would use all, and keep waking threads for it.
func share(n int) []string {
	return []string{fmt.Sprint("GOMAXPROCS=", max(1, runtime.GOMAXPROCS(0)/n))}
}

// startShop starts one of n shops.
func (s *site) startShop(ctx context.Context, n int) (*process.Process, error) {
	return process.Start(ctx, s.shop, s.flags, append(share(n), s.variables...), "The shop is open at http://")
}

// startNothing starts one of n handlers that do nothing.
func (s *site) startNothing(ctx context.Context, n int) (*process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return process.Start(ctx, self, []string{nothing, strconv.Itoa(s.size)}, share(n), openAt)
}

// several starts as many as instances says. They are stopped by close.
func (s *site) several(ctx context.Context, start func(context.Context, int) (*process.Process, error)) ([]*process.Process, error) {
	var started []*process.Process
	for range instances {
		p, err := start(ctx, instances)
		if err != nil {
			return nil, err
		}
		s.later(p.Stop)
		started = append(started, p)
	}
	return started, nil
}

func (s *site) later(stop func() error) { s.undo = append(s.undo, stop) }

// close stops the last first, all of it, whatever fails.
func (s *site) close() error {
	var errs []error
	for _, stop := range slices.Backward(s.undo) {
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}

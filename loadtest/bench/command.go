// Package bench measures how many orders per second the shop sells over HTTP, by each strategy, beside a handler that
// does nothing. README.md explains the method and the value of the figures.
//
// A run starts the servers, and three shop processes for each strategy. Then it measures case by case, round by round,
// strategy by strategy, and prints the tables. For each strategy of a round, it creates SKUs, sends the
// load, and audits.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lab"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
)

// ErrBroken means that the books of a shop are wrong. The tables name the shop.
var ErrBroken = errors.New("a promise was broken: see the column right")

// Command is the grammar of `loadtest bench` for kong, and the settings of a run.
type Command struct {
	Strategies []string      `group:"Cases" default:"lanes,redis,conditional" help:"Strategies to compare."`
	Cases      []string      `group:"Cases" default:"hot-64,hot-512,soldout,lone,grow" enum:"hot-64,hot-512,soldout,lone,grow,skus-64,skus-512,carts-64,carts-512,zipf-64,mixed" help:"Cases to run, from the list above."`
	Rounds     int           `group:"Cases" default:"3" help:"Rounds of each case (1 to 1000). The case grow has one round."`
	Time       time.Duration `group:"Cases" default:"1.5s" help:"How long to measure each strategy in each round (10ms to 1m). A warm-up comes first: until each buyer has an answer, and then a fifth of this time."`
	Buyers     int           `group:"Cases" placeholder:"N" help:"Buyers in every case (1 to 10000), instead of the case's own number."`

	Database string `group:"Servers" enum:"sqlite,mysql,mariadb" default:"sqlite" help:"Database of the shops: sqlite (one file for all three shops), mysql or mariadb."`
	MySQL    string `group:"Servers" name:"mysql" placeholder:"DSN" help:"Use this server for --database mysql or mariadb: user:password@tcp(host:3306)/database. It is migrated, and gains SKUs and orders: name a database for tests. Without this flag, a container is started."`
	Redis    string `group:"Servers" placeholder:"ADDR" help:"Use this Redis: host:port or redis:// URL. Without this flag: a container or, without Docker, the embedded Redis."`

	Shop     string   `group:"Shops" placeholder:"PATH" help:"Shop to measure: a built program, or a checkout to build it from. Without this flag: this checkout."`
	Against  string   `group:"Shops" placeholder:"PATH" help:"Second shop, measured beside the first in the same rounds, with a database of its own on the same server and a Redis of its own. PATH is as for --shop; the word group means the same shop on a MySQL group of three, in containers."`
	ShopFlag []string `group:"Shops" sep:"none" placeholder:"FLAG" help:"Further flag for shop serve, such as --shop-flag=--lock-ttl=5s. Repeat it for more flags."`

	Nothing bool `hidden:"" help:"Serve the handler that does nothing."`
}

// Help stands above the flags.
func (c *Command) Help() string {
	var b strings.Builder
	b.WriteString("The strategies take turns, round after round. Figures are medians over the rounds. Ratios are medians of the ratios " +
		"within each round, so that a slow moment of the machine affects both sides. loadtest/bench/README.md explains " +
		"the columns.\n\nThe cases:\n\n")
	for _, one := range allCases() {
		fmt.Fprintf(&b, "    %-9s  %s\n", one.name, one.about)
	}
	return b.String() + "\nExit code: 0 if every row is right; 1 if a row is wrong, or if the benchmark could not be " +
		"done; 2 if the flags make no sense."
}

// Validate returns an error if the flags make no sense. kong calls it.
func (c *Command) Validate() error {
	switch {
	case c.Rounds < 1 || c.Rounds > 1000:
		return fmt.Errorf("--rounds %d: want 1 to 1000", c.Rounds)
	case c.Time < 10*time.Millisecond || c.Time > time.Minute:
		return fmt.Errorf("--time %v: want 10ms to 1m", c.Time)
	case c.Buyers < 0 || c.Buyers > 10_000:
		return fmt.Errorf("--buyers %d: want 1 to 10000", c.Buyers)
	case c.MySQL != "" && c.Database == "sqlite":
		return errors.New("--mysql names a server: add --database mysql or --database mariadb")
	case c.Redis != "" && c.Against != "":
		return errors.New("--against: each shop needs a Redis of its own: leave out --redis")
	case c.Against == onGroup && c.Database == "sqlite":
		return errors.New("--against group: needs --database mysql or mariadb")
	}
	return nil
}

// Run measures and prints the tables.
func (c *Command) Run(ctx context.Context, k *kong.Context) error {
	if c.Nothing {
		return serveNothing(ctx, k.Stdout)
	}
	held, err := c.measure(ctx, k.Stdout, k.Stderr)
	if err == nil && slices.ContainsFunc(held, contest.broken) {
		err = ErrBroken
	}
	return err
}

// measure runs the cases, prints each, and stops the servers and shops. After an error, it returns the finished cases.
func (c *Command) measure(ctx context.Context, out, log io.Writer) (held []contest, err error) {
	dir, err := os.MkdirTemp("", "shop-bench-")
	if err != nil {
		return held, err
	}
	r := &run{Command: c, dir: dir, say: func(line string) { fmt.Fprintln(log, line) }, conns: shopclient.NewConnections(clerks, patience)}
	r.Later(func() error { r.conns.CloseIdleConnections(); return os.RemoveAll(dir) })
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.start(ctx); err != nil {
		return held, err
	}
	redis, err := new(app.Parts).OpenRedis(ctx, r.own.redis)
	if err != nil {
		return held, err
	}
	r.Later(redis.Close)
	m := result.ThisMachine()
	fmt.Fprintf(out, "%s, %d cores, %s/%s, %s\n", cmp.Or(m.CPUModel, "unknown processor"), runtime.NumCPU(), m.OS, m.Arch, m.Go)
	fmt.Fprintf(out, "database: %s\nredis: %s\n", r.database, lab.RedisVersion(ctx, redis))
	fmt.Fprintf(out, "each strategy on %d shop processes, for %v in each of %d rounds\n", instances, c.Time, c.Rounds)
	for _, one := range allCases() {
		if !slices.Contains(c.Cases, one.name) {
			continue
		}
		if c.Buyers > 0 {
			one.buyers, one.about = []int{c.Buyers}, fmt.Sprintf("%s; --buyers %d", one.about, c.Buyers)
		}
		if err := r.hold(ctx, &one); err != nil {
			return held, fmt.Errorf("%s: %w", one.name, err)
		}
		one.print(out)
		held = append(held, one)
	}
	return held, nil
}

// Package bench measures how many orders a second the shop sells over HTTP, by each strategy, beside a handler that
// does nothing. README.md says how, and what the figures are worth.
//
// A run goes: servers, three shop processes for each strategy, case by case, round by round, strategy by strategy,
// tables. Each strategy of a round goes: fresh SKUs, load, audit.
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

	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
)

// ErrBroken means that the books of a shop are wrong. The tables have said which.
var ErrBroken = errors.New("a promise was broken: see the column right")

// Command is the grammar of `loadtest bench` for kong, and the settings of a run.
type Command struct {
	Database   string        `enum:"sqlite,mysql,mariadb" default:"sqlite" help:"Where the shops keep orders: sqlite (one file for all three), mysql or mariadb."`
	MySQL      string        `name:"mysql" placeholder:"DSN" help:"Use this server for --database mysql or mariadb: user:password@tcp(host:3306)/database. It is migrated and gains SKUs and orders: use one for tests. Without it a container is started."`
	Redis      string        `placeholder:"ADDR" help:"Use this Redis: host:port or redis:// URL. Without it: a container, or the embedded one."`
	Strategies []string      `default:"lanes,redis,conditional" help:"Which to compare."`
	Cases      []string      `default:"hot-64,hot-512,soldout,lone,grow" enum:"hot-64,hot-512,soldout,lone,grow,skus-64,skus-512,carts-64,carts-512,zipf-64,mixed" help:"Which cases; the others run only if named."`
	Rounds     int           `default:"3" help:"Rounds of each case but grow, which has one: 1 to 1000."`
	Time       time.Duration `default:"1.5s" help:"For each strategy in each round: 10ms to 1m. Before that, each buyer had an answer, and a fifth of this time has passed."`
	Buyers     int           `placeholder:"N" help:"This many buyers in every case, instead of its own number: 1 to 10000."`
	Shop       string        `placeholder:"PATH" help:"The shop to measure: a built program, or the folder of a checkout to build it from. Without it, that of this checkout."`
	Against    string        `placeholder:"PATH" help:"A second shop, given as for --shop, to measure beside the first in the same rounds: with a database of its own on the same server and a Redis of its own. The word group is the same shop on a MySQL group of three, in containers."`
	ShopFlag   []string      `sep:"none" placeholder:"FLAG" help:"One more flag for shop serve, such as --shop-flag=--lock-ttl=5s. Can be given again."`

	Nothing bool `hidden:"" help:"Serve the handler that does nothing."`
}

// Help stands above the flags.
func (c *Command) Help() string {
	var b strings.Builder
	b.WriteString("The strategies take turns, round after round. Figures are medians over the rounds; ratios are taken within each round " +
		"first, so that a slow moment of the machine counts for all. loadtest/bench/README.md explains the columns.\n\nThe cases:\n\n")
	for _, one := range allCases() {
		fmt.Fprintf(&b, "    %-9s  %s\n", one.name, one.about)
	}
	return b.String() + "\nExit code: 0 if every row is right, 1 if one is not or the benchmark could not be done, 2 if the flags make no sense."
}

// Validate returns what is wrong with the flags. kong calls it.
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

// measure holds the cases, prints each, and stops what it has started. With an error, it returns those that were held.
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
	m := result.ThisMachine()
	fmt.Fprintf(out, "%s, %d cores, %s/%s, %s\n", cmp.Or(m.CPUModel, "unknown processor"), runtime.NumCPU(), m.OS, m.Arch, m.Go)
	fmt.Fprintf(out, "database: %s\nredis: %s\n", r.database, redisVersion(ctx, r.own.redis))
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

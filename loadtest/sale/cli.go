package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/shop/loadtest/cli"
)

const (
	maxRounds = 1000
	minTime   = 10 * time.Millisecond
	maxTime   = time.Minute
	maxBuyers = 10_000 // of the shop's --max-in-flight
)

// flags are what the user chose.
type flags struct {
	Database   string        `enum:"sqlite,mysql,mariadb" default:"sqlite" help:"Where the shops keep orders: sqlite (one file for all three), mysql or mariadb."`
	MySQL      string        `name:"mysql" placeholder:"DSN" help:"Use this server for --database mysql or mariadb: user:password@tcp(host:3306)/database. It is migrated and gains SKUs and orders: use one for tests. Without it a container is started."`
	Redis      string        `placeholder:"ADDR" help:"Use this Redis: host:port or redis:// URL. Without it: a redis-server process, or a container, or the embedded one."`
	Strategies []string      `default:"lanes,redis,conditional,for-update,optimistic" help:"Which to compare, beside nothing. Those that the shop does not know, or has no server for, are left out, with a line that says so."`
	Cases      []string      `default:"all" help:"Which cases, by their names."`
	Rounds     int           `help:"Rounds of each case but grow, which has one (1 to 1000); 3 if not given, 2 with --quick."`
	Time       time.Duration `help:"For each strategy in each round (10ms to 1m); 1.5s if not given, 300ms with --quick. Before that, each buyer had an answer, and a fifth of this time has passed."`
	Buyers     int           `placeholder:"N" help:"This many buyers in every case, instead of its own number (1 to 10000)."`
	Quick      bool          `help:"About a minute: short rounds, and grow ends at 1,000 buyers. For a look, not for figures to quote."`
	Shop       string        `placeholder:"FILE" help:"The built shop program. Without it, ./cmd/shop is built."`
	ShopFlag   []string      `sep:"none" placeholder:"FLAG" help:"One more flag for shop serve, such as --shop-flag=--lock-ttl=5s. Can be given again."`
	JSON       string        `name:"json" placeholder:"FILE" help:"Write all rounds as JSON too; '-' for stdout, everything else then goes to stderr."`
}

// parse returns the flags, or a cli.ErrUsage that names the flag that is wrong.
func parse(args []string, stdout, stderr io.Writer) (flags, error) {
	var f flags
	program := cli.Program{Name: "sale", About: description, Lesson: lesson()}
	if err := program.Parse(&f, args, stdout, stderr); err != nil {
		return flags{}, err
	}
	f.fill()
	return f, f.check()
}

// fill gives what was not typed the length of a full or a quick run.
func (f *flags) fill() {
	rounds, length := 3, 1500*time.Millisecond
	if f.Quick {
		rounds, length = 2, 300*time.Millisecond
	}
	if f.Rounds == 0 {
		f.Rounds = rounds
	}
	if f.Time == 0 {
		f.Time = length
	}
}

// check returns a cli.ErrUsage for the first flag that asks for too much, too little
// or what another flag excludes.
func (f *flags) check() error {
	var problem string
	switch {
	case f.Rounds < 1 || f.Rounds > maxRounds:
		problem = fmt.Sprintf("--rounds %d: want 1 to %d", f.Rounds, maxRounds)
	case f.Time < minTime || f.Time > maxTime:
		problem = fmt.Sprintf("--time %v: want %v to %v", f.Time, minTime, maxTime)
	case f.Buyers < 0 || f.Buyers > maxBuyers:
		problem = fmt.Sprintf("--buyers %d: want 1 to %d", f.Buyers, maxBuyers)
	case f.MySQL != "" && f.Database == "sqlite":
		problem = "--mysql names a server: add --database mysql or --database mariadb"
	case len(f.Strategies) == 0:
		problem = "--strategies: want at least one"
	}
	if problem != "" {
		return fmt.Errorf("%w: %s", cli.ErrUsage, problem)
	}
	if dir := filepath.Dir(f.JSON); f.JSON != "" && f.JSON != "-" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return fmt.Errorf("%w: --json %s: there is no folder %s", cli.ErrUsage, f.JSON, dir)
		}
	}
	_, err := f.cases()
	return err
}

// cases returns those that were asked for, in the order of the table.
func (f *flags) cases() ([]contest, error) {
	var chosen []contest
	known := map[string]bool{"all": true}
	var names []string
	for _, c := range contests(f.Quick) {
		known[c.name] = true
		names = append(names, c.name)
		for _, wanted := range f.Cases {
			if wanted == "all" || wanted == c.name {
				if f.Buyers > 0 {
					c = c.with(f.Buyers)
				}
				chosen = append(chosen, c)
				break
			}
		}
	}
	for _, wanted := range f.Cases {
		if !known[wanted] {
			return nil, fmt.Errorf("%w: --cases: %.80q is not one of %s", cli.ErrUsage, wanted, strings.Join(names, ", "))
		}
	}
	return chosen, nil
}

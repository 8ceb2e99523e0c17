package designs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lab"
	"example.com/shop/internal/order"
	"example.com/shop/internal/store"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shops"
)

// Command is the grammar of `loadtest designs` for kong, and the settings of a run.
type Command struct {
	MySQL  string        `group:"Servers" name:"mysql" placeholder:"DSN" help:"Use this MySQL, one for tests, instead of a container."`
	Redis  string        `group:"Servers" placeholder:"ADDR" help:"Use this Redis, host:port or redis:// URL, instead of a container. The faults empty it, so that it has to be empty; no failover takes place."`
	Only   []string      `group:"Cases" placeholder:"NAME" help:"Only these designs."`
	Length time.Duration `group:"Cases" default:"2s" help:"How long each case is measured (10ms to 1m), after 0.5s of warm-up."`
	Faults bool          `group:"Cases" default:"true" negatable:"" help:"Break each design in the middle of a sale."`
	JSON   string        `group:"Output" name:"json" placeholder:"FILE" help:"Also write the report as JSON; '-' for stdout, all other output then goes to stderr."`
	SVG    string        `group:"Output" name:"svg" placeholder:"FILE" help:"Also write a picture: orders/s, and what each fault broke, as an SVG file."`

	Seller bool `hidden:"" help:"Sell what stdin says: the process that is killed."`
}

// About stands above the flags in the help.
const About = `Compares ways to sell a scarce thing to a crowd: what others have built, as the smallest honest ` +
	`program each, and the strategies of this shop, called in the process, without HTTP. Then it breaks each in the middle of ` +
	`a sale, and compares the receipts of the buyers with the rows of their orders.

All write the same rows on the same MySQL, for the same crowd: each buyer asks again as soon as there is an answer. ` +
	`A server that is given with --mysql user:password@tcp(host:3306)/database is migrated, and gains SKUs, orders and ` +
	`tables design_*.`

// Footer stands below the flags in the help.
func (Command) Footer() string {
	var b strings.Builder
	b.WriteString(`
Examples:
  go run ./loadtest designs                            all, on MySQL and Redis in containers
  go run ./loadtest designs --only row-first,row-last  what does it cost to hold a row longer?
  go run ./loadtest designs --only buckets             how much does a split stock leave unsold?

The columns: orders/s of 64 and of 512 buyers who all want one SKU, or one of 64; orders/s with carts
of three SKUs; refusals/s when 1,000 units are sold; how many of these were unsold when the first buyer
was refused; how long the last order was written behind its answer; what went wrong in any of the faults.

The faults come in the middle of a sale of one SKU to 64 buyers, by a process of its own:
`)
	for _, f := range allFaults() {
		lang.Hang(&b, 100, "  "+f.name, 24, f.about)
	}
	b.WriteString(`Their columns:
  lost, oversold        acknowledged orders without a row; units in orders above the supply
  undersold, left       units for sale when a buyer was told that the SKU is sold out, and at the end
  again                 the longest time without a sale, from the fault on; - if nothing was sold after it

The designs, with a * if a fault makes them lose orders, oversell or undersell:
`)
	for _, d := range All() {
		lang.Hang(&b, 100, "  "+d.starred(), 24, d.About)
	}
	b.WriteString(`
Exit code: 0 if each design with a * was harmed by a fault and no other was, 1 if not or if the work
could not be done, 2 if the flags make no sense.
`)
	return b.String()
}

// Validate returns an error if the flags make no sense. kong calls it.
func (c *Command) Validate() error {
	if c.Length < 10*time.Millisecond || c.Length > time.Minute {
		return fmt.Errorf("--length %v: want 10ms to 1m", c.Length)
	}
	if err := (&shops.Servers{MySQL: c.MySQL, Redis: c.Redis}).Check(); err != nil {
		return err
	}
	names := order.Map(All(), func(d Design) string { return d.Name })
	if i := slices.IndexFunc(c.Only, func(name string) bool { return !slices.Contains(names, name) }); i >= 0 {
		return fmt.Errorf("--only %.40q: want names of %s", c.Only[i], strings.Join(names, ", "))
	}
	return nil
}

// Run measures the designs, breaks them, and prints the tables.
func (c *Command) Run(ctx context.Context, k *kong.Context) (err error) {
	if c.Seller {
		return sell(ctx, All(), os.Stdin, k.Stdout)
	}
	out := k.Stdout
	if c.JSON == "-" {
		out = k.Stderr
	}
	r := Report{Version: 1, StartedAt: time.Now().UTC()}
	for _, d := range All() {
		if len(c.Only) == 0 || slices.Contains(c.Only, d.Name) {
			r.Designs = append(r.Designs, &Row{Design: d, Load: map[string]float64{}, Errors: []string{}})
		}
	}
	say := func(format string, values ...any) { fmt.Fprintf(k.Stderr, format+"\n", values...) }
	var started shops.Undo
	defer func() { err = errors.Join(err, started.Close()) }()
	g, err := c.start(ctx, &started, r, say)
	if err != nil {
		return err
	}
	r.Machine = result.ThisMachine()
	r.Machine.RedisVersion = lab.RedisVersion(ctx, g.one.Redis)
	if r.Machine.DatabaseVersion, err = g.one.Store.Version(ctx); err != nil {
		return err
	}
	if err := c.measure(ctx, g, r, say); err != nil {
		return err
	}
	return errors.Join(r.write(out), result.Save(c.JSON, k.Stdout, result.JSON(r)),
		result.Save(c.SVG, k.Stdout, r.writeSVG), r.asKnown())
}

// measure measures and breaks the designs of a report. They take turns, and each case begins with another design.
func (c *Command) measure(ctx context.Context, g *testbed, r Report, say func(string, ...any)) error {
	for i, one := range loadCases() {
		for j := range r.Designs {
			row := r.Designs[(i+j)%len(r.Designs)]
			if one.lines > 1 && !row.Carts {
				continue
			}
			if err := row.measure(ctx, g.one, one, c.Length); err != nil {
				return fmt.Errorf("%s, %s: %w", one.name, row.Name, err)
			}
			say("%s: %s: %s/s", one.name, row.Name, thousands(row.Load[one.figure]))
		}
	}
	if !c.Faults {
		return nil
	}
	for _, row := range r.Designs {
		// The sale goes on for about two seconds after a fault, or as long as a writer of this machine is not far behind.
		if err := g.breakAll(ctx, row, min(max(200, int64(3*row.Load[hot])), 20_000)); err != nil {
			return err
		}
		say("broken: %s: %s", row.Name, row.Verdict)
	}
	return nil
}

// start connects to the servers that were given, and starts the others in containers: for a failover, which needs a
// Redis with replicas, where Redis is in a container and Redis decides in one of the designs.
func (c *Command) start(ctx context.Context, started *shops.Undo, r Report, say func(string, ...any)) (*testbed, error) {
	var opens []func(context.Context) (*testserver.Server, error)
	if c.MySQL == "" {
		opens = append(opens, testserver.OpenMySQL)
	}
	if c.Redis == "" {
		opens = append(opens, testserver.OpenRedis)
	}
	containers, err := testserver.OpenAll(ctx, opens...)
	if err != nil {
		return nil, fmt.Errorf("%w; without Docker, give servers with --mysql and --redis", err)
	}
	started.Later(containers.Close)
	say("servers in containers: %v", containers)
	dsn, addr := c.MySQL, c.Redis
	if dsn == "" {
		dsn, err = containers[0].NewSchema(ctx, "shop")
	}
	if addr == "" {
		addr = containers[len(containers)-1].Addr()
	}
	g := new(testbed)
	if err == nil {
		g.one, err = connect(ctx, dsn, addr, started)
	}
	switch {
	case err != nil || !c.Faults:
	case c.Redis != "":
		keys, failed := g.one.Redis.InfoMap(ctx, "Keyspace").Result()
		if failed != nil || len(keys["Keyspace"]) > 0 {
			return nil, cmp.Or(failed, errors.New("--redis: it has keys, which faults would delete; give an empty Redis for tests"))
		}
		started.Later(func() error { return g.one.Redis.FlushAll(context.WithoutCancel(ctx)).Err() })
	case slices.ContainsFunc(r.Designs, func(row *Row) bool { return row.Redis }):
		if g.sentinel, err = testserver.OpenRedisSentinel(ctx); err != nil {
			return nil, err
		}
		started.Later(g.sentinel.Close)
		g.group, err = connect(ctx, dsn, g.sentinel.URL, started)
	}
	return g, err
}

// connect opens the database, whose schema it brings up to date, and Redis.
func connect(ctx context.Context, dsn, addr string, opened *shops.Undo) (on Servers, err error) {
	db, err := store.MySQL(ctx, dsn, store.Options{})
	if err != nil {
		return on, fmt.Errorf("--mysql: %w", err)
	}
	opened.Later(db.Close)
	if _, err := db.Migrate(ctx); err != nil {
		return on, err
	}
	// Connections for the consumers of 64 SKUs, and for buyers. A script that has run unseen must not run again.
	host, query, _ := strings.Cut(strings.TrimPrefix(addr, "redis://"), "?")
	address := "redis://" + host + "?pool_size=128&max_retries=-1&" + query
	reached, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := new(app.Parts).OpenRedis(reached, address)
	if err != nil {
		return on, err
	}
	opened.Later(client.Close)
	return Servers{dsn, addr, db, db.DB(), client}, nil
}

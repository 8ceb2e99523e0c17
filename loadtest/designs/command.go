package designs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shops"
	"example.com/shop/loadtest/stats"
)

// Command is the grammar of `loadtest designs` for kong, and the settings of a run.
type Command struct {
	MySQL  string        `name:"mysql" placeholder:"DSN" help:"Use this MySQL, one for tests, instead of a container."`
	Redis  string        `placeholder:"ADDR" help:"Use this Redis, host:port or redis:// URL, instead of a container."`
	Only   []string      `placeholder:"NAME" help:"Only these designs."`
	Length time.Duration `default:"2s" help:"How long each case is measured (10ms to 1m), after 0.5s of warm-up."`
}

// About stands above the flags in the help.
const About = `Compares ways to sell a scarce thing to a crowd: what others have built, as the smallest honest ` +
	`program each, and the strategies of this shop, called in the process, without HTTP.

All write the same rows on the same MySQL, for the same crowd: each buyer asks again as soon as there is an answer. ` +
	`The designs take turns, and each case begins with another design.

A server that is given with --mysql user:password@tcp(host:3306)/database is migrated, and gains SKUs, orders and ` +
	`tables design_*.`

// Footer stands below the flags in the help.
func (Command) Footer() string {
	var b strings.Builder
	b.WriteString(`
Examples:
  go run ./loadtest designs                     all, on MySQL and Redis in containers
  go run ./loadtest designs --only row-first,row-last,lanes
                                                what does it cost to hold a row longer?
  go run ./loadtest designs --only buckets --length 500ms
                                                how much does a split stock leave unsold?

The columns:
  1 SKU, 64     orders/s of 64 buyers who all want the same SKU
  64 SKUs, 512  orders/s of 512 buyers, each order for one of 64 SKUs
  carts, 64     orders/s of 64 buyers, each order for three of 64 SKUs; - without carts
  refused       refusals/s of 64 buyers of a SKU whose 1,000 units are sold
  unsold        how many of these units were left when the first buyer was refused
  behind        from the last answer until the last order was written, at its worst

The designs, with a * if a fault makes them lose orders, oversell or undersell:
`)
	for _, d := range All() {
		about := strings.Join(lang.Wrap(d.About, 56), "\n"+strings.Repeat(" ", 24))
		fmt.Fprintf(&b, "  %-22s%s\n", starred(d), about)
	}
	b.WriteString("\nExit code: 0 if everything was measured, 1 if not, 2 if the flags make no sense.\n")
	return b.String()
}

func starred(d Design) string {
	if d.Wrong {
		return d.Name + " *"
	}
	return d.Name
}

// Validate returns what is wrong with the flags. kong calls it.
func (c *Command) Validate() error {
	if c.Length < 10*time.Millisecond || c.Length > time.Minute {
		return fmt.Errorf("--length %v: want 10ms to 1m", c.Length)
	}
	names := order.Each(All(), func(d Design) string { return d.Name })
	for _, name := range c.Only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--only %.40q: want names of %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// Run measures the designs and prints the table.
func (c *Command) Run(ctx context.Context, k *kong.Context) (err error) {
	progress := func(line string) { fmt.Fprintln(k.Stderr, line) }
	on, stop, err := c.start(ctx, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	designs := slices.DeleteFunc(All(), func(d Design) bool {
		return len(c.Only) > 0 && !slices.Contains(c.Only, d.Name)
	})
	measured, err := c.measureAll(ctx, on, designs, progress)
	if err != nil {
		return err
	}
	header := table.Row{"design"}
	for _, one := range loadCases() {
		header = append(header, one.name)
	}
	header = append(header, "unsold", "behind")
	var rows []table.Row
	for _, d := range designs {
		row := append(table.Row{starred(d)}, cells(measured[d.Name])...)
		rows = append(rows, row)
	}
	m := result.ThisMachine()
	fmt.Fprintf(k.Stdout, "%s, %d cores, %s/%s, %s\n\n",
		cmp.Or(m.CPUModel, "unknown processor"), m.CPUs, m.OS, m.Arch, m.Go)
	fmt.Fprint(k.Stdout, stats.Table(header, rows, 2, len(header)))
	for _, d := range designs {
		for _, one := range loadCases() {
			if f := measured[d.Name][one.name]; f.problem != nil {
				fmt.Fprintf(k.Stdout, "%s, %s: %d errors, the first: %.200v\n", d.Name, one.name, f.problems, f.problem)
			}
		}
	}
	return nil
}

// measureAll returns what came of each case, by the names of the design and of the case.
func (c *Command) measureAll(ctx context.Context, on Servers, designs []Design, progress func(string)) (
	measured map[string]map[string]figures, err error,
) {
	measured = map[string]map[string]figures{}
	for i, one := range loadCases() {
		for j := range designs {
			d := designs[(i+j)%len(designs)]
			if one.lines > 1 && !d.Carts {
				continue
			}
			f, err := measure(ctx, on, d, one, c.Length)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", one.name, d.Name, err)
			}
			if measured[d.Name] == nil {
				measured[d.Name] = map[string]figures{}
			}
			measured[d.Name][one.name] = f
			progress(fmt.Sprintf("%s: %s: %s/s", one.name, d.Name, thousands(f.perSecond)))
		}
	}
	return measured, nil
}

// cells are the columns of a design behind its name.
func cells(measured map[string]figures) (row table.Row) {
	var unsold int64
	var behind time.Duration
	for _, one := range loadCases() {
		f, ok := measured[one.name]
		if !ok {
			row = append(row, "-")
			continue
		}
		row = append(row, thousands(f.perSecond))
		unsold, behind = unsold+f.unsold, max(behind, f.behind)
	}
	return append(row, unsold, fmt.Sprintf("%.1fs", behind.Seconds()))
}

func thousands(perSecond float64) string { return humanize.Comma(int64(perSecond)) }

// start connects to the servers that were given, and starts the others in containers.
func (c *Command) start(ctx context.Context, progress func(string)) (on Servers, stop func() error, err error) {
	var started shops.Undo
	defer func() {
		if err != nil {
			err = errors.Join(err, started.Close())
		}
	}()
	dsn, addr := c.MySQL, c.Redis
	if dsn == "" {
		server, err := testserver.OpenMySQL(ctx)
		if err != nil {
			return on, nil, fmt.Errorf("%w; without Docker, give a server with --mysql", err)
		}
		started.Later(server.Close)
		progress(server.String())
		if dsn, err = server.NewSchema(ctx, "shop"); err != nil {
			return on, nil, err
		}
	}
	if addr == "" {
		server, err := testserver.OpenRedis(ctx)
		if err != nil {
			return on, nil, fmt.Errorf("%w; without Docker, give a server with --redis", err)
		}
		started.Later(server.Close)
		progress(server.String())
		addr = server.Addr()
	}
	on, disconnect, err := connect(ctx, dsn, addr)
	if err != nil {
		return on, nil, err
	}
	started.Later(disconnect)
	return on, started.Close, nil
}

// connect opens the database, whose schema it brings up to date, and Redis.
func connect(ctx context.Context, dsn, addr string) (on Servers, disconnect func() error, err error) {
	client, err := openRedis("redis://" + strings.TrimPrefix(addr, "redis://"))
	if err != nil {
		return on, nil, errors.New("--redis: want host:port or a URL such as redis://user:password@host:6379/0")
	}
	db, err := store.MySQL(ctx, dsn, store.Options{})
	if err != nil {
		return on, nil, fmt.Errorf("--mysql: %w", err)
	}
	disconnect = func() error { return errors.Join(client.Close(), db.Close()) }
	_, err = db.Migrate(ctx)
	if err == nil {
		err = client.Ping(ctx).Err()
	}
	if err != nil {
		return on, nil, errors.Join(err, disconnect())
	}
	return Servers{DSN: dsn, DB: db.DB(), Redis: client}, disconnect, nil
}

// openRedis opens a Redis or, where the URL has a master_name, the one that Sentinels name. A script that has run unseen
// must not run again.
func openRedis(address string) (redis.UniversalClient, error) {
	const pool = 128 // a consumer for each of 64 SKUs, and the buyers
	if strings.Contains(address, "master_name=") {
		o, err := redis.ParseFailoverURL(address)
		if err != nil {
			return nil, err
		}
		o.PoolSize, o.MaxRetries, o.ContextTimeoutEnabled, o.DisableIdentity = pool, -1, true, true
		return redis.NewFailoverClient(o), nil
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, err
	}
	o.PoolSize, o.MaxRetries, o.ContextTimeoutEnabled, o.DisableIdentity = pool, -1, true, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

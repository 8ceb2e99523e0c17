package designs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/order"
	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shops"
)

// Command is the grammar of `loadtest designs` for kong, and the settings of a run.
type Command struct {
	MySQL  string        `name:"mysql" placeholder:"DSN" help:"Use this MySQL, one for tests, instead of a container."`
	Redis  string        `placeholder:"ADDR" help:"Use this Redis, host:port or redis:// URL, instead of a container. The faults empty it, so that it has to be empty; no failover takes place."`
	Only   []string      `placeholder:"NAME" help:"Only these designs."`
	Length time.Duration `default:"2s" help:"How long each case is measured (10ms to 1m), after 0.5s of warm-up."`
	Faults bool          `default:"true" negatable:"" help:"Break each design in the middle of a sale."`
	JSON   string        `name:"json" placeholder:"FILE" help:"Write the report as JSON too; '-' for stdout, everything else then goes to stderr."`
	SVG    string        `name:"svg" placeholder:"FILE" help:"Write a picture too: orders/s, and what each fault broke, as an SVG file."`

	Seller bool `hidden:"" help:"Sell as the environment says: the process that is killed."`
}

// ErrUnlike means that a design was harmed that is known to be right, or the other way round. The table says which.
var ErrUnlike = errors.New("a design was not as it is known to be")

// About stands above the flags in the help.
const About = `Compares ways to sell a scarce thing to a crowd: what others have built, as the smallest honest ` +
	`program each, and the strategies of this shop, called in the process, without HTTP. Then it breaks each in the middle of ` +
	`a sale, and compares the receipts of the buyers with the rows of their orders.

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
  verdict       what went wrong in any of the faults

Then the faults, each in the middle of a sale to 64 buyers of one SKU, in a process of its own:
  kill -9             the process is killed and started again
  kill -9 at the end  so it is when the first buyer has been told that the SKU is sold out
  FLUSHALL            Redis forgets everything
  failover            Redis is replaced by a replica that has learned nothing new for some time; where Redis decides
Their columns:
  orders        acknowledged to a buyer
  lost          acknowledged orders without a row
  oversold      units in orders that are acknowledged or have a row, above the supply
  undersold     units that were for sale when a buyer was told that the SKU is sold out
  untold        orders with a row of which no buyer was told: allowed, since their buyers will ask again
  again         the longest time without a sale, from the fault on; - if nothing was sold after it

The designs, with a * if a fault makes them lose orders, oversell or undersell:
`)
	for _, d := range All() {
		about := strings.Join(lang.Wrap(d.About, 56), "\n"+strings.Repeat(" ", 24))
		fmt.Fprintf(&b, "  %-22s%s\n", starred(d.Name, d.Wrong), about)
	}
	b.WriteString(`
Exit code: 0 if each design with a * was harmed by a fault and no other was, 1 if not or if the work
could not be done, 2 if the flags make no sense.
`)
	return b.String()
}

func starred(name string, wrong bool) string {
	if wrong {
		return name + " *"
	}
	return name
}

// Validate returns what is wrong with the flags. kong calls it.
func (c *Command) Validate() error {
	if c.Length < 10*time.Millisecond || c.Length > time.Minute {
		return fmt.Errorf("--length %v: want 10ms to 1m", c.Length)
	}
	if c.SVG == "-" {
		return errors.New("--svg: want the name of a file; only --json writes to stdout")
	}
	if err := (&shops.Servers{MySQL: c.MySQL, Redis: c.Redis}).Check(); err != nil && !c.Seller {
		return err
	}
	names := order.Map(All(), func(d Design) string { return d.Name })
	for _, name := range c.Only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--only %.40q: want names of %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// Run measures the designs, breaks them, and prints the tables.
func (c *Command) Run(ctx context.Context, k *kong.Context) (err error) {
	if c.Seller {
		return Sell(ctx, All(), os.Stdin, k.Stdout)
	}
	out := k.Stdout
	if c.JSON == "-" {
		out = k.Stderr
	}
	progress := func(line string) { fmt.Fprintln(k.Stderr, line) }
	designs := slices.DeleteFunc(All(), func(d Design) bool {
		return len(c.Only) > 0 && !slices.Contains(c.Only, d.Name)
	})
	failover := slices.ContainsFunc(designs, func(d Design) bool { return d.Redis })
	g, stop, err := c.start(ctx, failover, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	whole := Report{Version: 1, StartedAt: time.Now().UTC(), Machine: machine(ctx, g.Servers)}
	measured, err := c.measureAll(ctx, g.Servers, designs, progress)
	if err != nil {
		return err
	}
	for _, d := range designs {
		row := newRow(d, measured[d.Name])
		if c.Faults {
			// The sale goes on for about two seconds after a fault, or as long as a writer of this machine is not far behind.
			supply := min(max(200, int64(3*row.Load[hot])), 20_000)
			if row.Faults, row.Tries, err = g.Break(ctx, d, supply); err != nil {
				return err
			}
			row.Verdict = verdictOf(row.Faults...)
			progress(fmt.Sprintf("broken: %s: %s", d.Name, row.Verdict))
		}
		whole.Designs = append(whole.Designs, row)
	}
	err = errors.Join(whole.write(out),
		result.Save(c.JSON, k.Stdout, result.JSON(whole)), result.Save(c.SVG, k.Stdout, whole.writeSVG))
	if unlike := whole.unlike(); err == nil && len(unlike) > 0 {
		err = fmt.Errorf("%w: %s", ErrUnlike, strings.Join(unlike, ", "))
	}
	return err
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

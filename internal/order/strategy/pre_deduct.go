package strategy

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
)

// PreDeduct is WRONG, though it never oversells: a count in Redis decides who may buy, and the guarded UPDATE follows. A
// process that dies between the two has taken units for nobody: the shop is sold out and has some left. Nor do units come back
// to the count that an order which expires or is cancelled gives back.
type PreDeduct struct {
	Shop
	Redis redis.UniversalClient
}

// Sell takes the units from the counts, and then from the database. Units that the database does not sell are given back.
func (s PreDeduct) Sell(ctx context.Context, d *order.Draft) error {
	taken, err := takeCounted(ctx, s, d) // 1. in Redis: DECRBY, if enough are left
	if err == nil {
		err = Conditional{s.Shop}.Sell(ctx, d) // 2. in the database: UPDATE ... WHERE available >= ?
	}
	if err != nil && !errors.Is(err, order.ErrUnknownOutcome) {
		s.giveBack(ctx, taken) // 3. INCRBY, unless the process has died or Redis does not answer
	}
	return err
}

// giveBack adds units to their counts.
func (s PreDeduct) giveBack(ctx context.Context, lines []order.Line) {
	for _, line := range lines {
		s.Redis.IncrBy(context.WithoutCancel(ctx), countKey(line.SKU), line.Units)
	}
}

func (s PreDeduct) ask(ctx context.Context, _ *order.Draft, line order.Line) (answer string, err error) {
	return takeUnits.Eval(ctx, s.Redis, []string{countKey(line.SKU)}, line.Units).Text()
}

// load begins a count with the units that the database has. With NX, a count that another instance has begun stays.
func (s PreDeduct) load(ctx context.Context, line order.Line) error {
	levels, err := s.Store.Levels(ctx, line)
	if err != nil {
		return err
	}
	return s.Redis.SetNX(ctx, countKey(line.SKU), levels.SKUs[line.SKU].Available, 0).Err()
}

// countKey is the key of a SKU's count. SKUs with the same braces are in the same slot of a Redis Cluster.
func countKey(sku string) string { return "count:{" + Key(sku) + "}" }

//go:embed take_units.lua
var takeUnitsSource string

var takeUnits = newScript("take-units", takeUnitsSource)

func newScript(name, source string) lock.Script {
	return lock.Script{Script: redis.NewScript(source), Name: name, Source: source}
}

// counter keeps a count of each SKU's units in Redis.
type counter interface {
	// ask takes the units of a line from its count. The answer is "taken", "too few", "unknown" for a count that load has to
	// begin, or "wait".
	ask(ctx context.Context, d *order.Draft, line order.Line) (answer string, err error)
	load(ctx context.Context, line order.Line) error
}

// takeCounted takes the units of all lines. It also returns the lines that it has taken if a later one fails.
func takeCounted(ctx context.Context, by counter, d *order.Draft) (taken []order.Line, err error) {
	for _, line := range d.Sorted() {
		answer := ""
		for try := 0; answer != "taken"; try++ {
			switch answer, err = by.ask(ctx, d, line); answer {
			case "taken":
				taken = append(taken, line)
			case "too few":
				err = order.ErrSoldOut
			case "unknown":
				err = by.load(ctx, line)
			case "wait":
				err = order.Pause(ctx, backOff(min(try, 5)))
			default:
				err = noCount(err)
			}
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return taken, fmt.Errorf("sku %q: %w", line.SKU, err)
			}
		}
	}
	return taken, nil
}

// noCount is the error of a count. The cause is not wrapped: a transaction would take it for the database's, and run again.
func noCount(err error) error {
	return fmt.Errorf("%w: count: %v", lock.ErrNoAnswer, err) //nolint:errorlint // see above
}

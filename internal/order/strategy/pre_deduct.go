package strategy

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

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
	taken, err := takeCounted(ctx, s.Redis, d, s.load) // 1. in Redis: DECRBY, if enough are left
	if err == nil {
		err = Conditional{s.Shop}.Sell(ctx, d) // 2. in the database: UPDATE ... WHERE available >= ?
	}
	if err != nil && !errors.Is(err, order.ErrUnknownOutcome) {
		giveBack(ctx, s.Redis, taken) // 3. INCRBY, unless the process has died or Redis does not answer
	}
	return err
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

// takeUnits takes units from a count, if enough are left.
const takeUnitsSource = `
	local left = redis.call("GET", KEYS[1])
	if not left then
		return "unknown"
	end
	if tonumber(left) < tonumber(ARGV[1]) then
		return "too few"
	end
	redis.call("DECRBY", KEYS[1], ARGV[1])
	return "taken"`

var takeUnits = redis.NewScript(takeUnitsSource)

// takeCounted takes the units of all lines from their counts, which load begins where there is none. It also returns the lines
// that it has taken if a later one fails.
func takeCounted(
	ctx context.Context, client redis.UniversalClient, d *order.Draft, load func(context.Context, order.Line) error,
) (taken []order.Line, err error) {
	for _, line := range d.Lines {
		answer := "unknown"
		for answer == "unknown" {
			answer, err = takeUnits.Eval(ctx, client, []string{countKey(line.SKU)}, line.Units).Text()
			if err != nil {
				return taken, noCount(line.SKU, err)
			}
			if answer == "unknown" {
				err = load(ctx, line)
			}
			if err != nil {
				return taken, err
			}
		}
		if answer != "taken" {
			return taken, fmt.Errorf("sku %q: %w", line.SKU, order.ErrSoldOut)
		}
		taken = append(taken, line)
	}
	return taken, nil
}

// giveBack adds units to their counts.
func giveBack(ctx context.Context, client redis.UniversalClient, lines []order.Line) {
	for _, line := range lines {
		client.IncrBy(context.WithoutCancel(ctx), countKey(line.SKU), line.Units)
	}
}

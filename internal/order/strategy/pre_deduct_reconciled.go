package strategy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// PreDeductReconciled is PreDeduct made right. Redis keeps the count and, for each order that has taken units, its deadline. A
// buyer is refused only once nobody can give units back; until then it waits. A buyer who finds the count missing, or an order
// overdue, counts again from the database.
//
// Before its COMMIT, a transaction that holds the row of the stock checks that Redis still knows its order. Counting again
// waits for the same row, so that an order which a new count does not know is never written: a count that was lost lets in no
// more buyers than there are units.
type PreDeductReconciled struct {
	Shop
	Redis    redis.UniversalClient
	Deadline time.Duration // for writing an order whose units are taken
	Patience time.Duration // of a buyer who waits for units that others have taken
}

// Sell takes the units from the counts, and then from the database. It starts over when a count was lost in between.
func (s PreDeductReconciled) Sell(ctx context.Context, d *order.Draft) error {
	waiting, cancel := context.WithTimeoutCause(ctx, s.Patience, fmt.Errorf("%w: orders that hold these units are not written yet", order.ErrBusy))
	defer cancel()
	for {
		if err := s.take(waiting, d); err != nil { // 1. in Redis
			s.settle(ctx, d, "give back")
			return err
		}
		switch err := s.write(ctx, d); { // 2. in the database
		case err == nil: // 3. in Redis
			s.settle(ctx, d, "written")
			return nil
		case errors.Is(err, errForgotten):
			s.settle(ctx, d, "give back") // of lines that are still known
		case errors.Is(err, order.ErrUnknownOutcome): // after the deadline it is known
			return err
		case errors.Is(err, order.ErrSoldOut): // the count was wrong
			s.settle(ctx, d, "count again")
			return err
		default:
			s.settle(ctx, d, "give back")
			return err
		}
	}
}

// errForgotten means that units were counted again without what this order has taken.
var errForgotten = errors.New("the taken units were counted again")

// take takes the units of all lines. It waits while others may give units back.
func (s PreDeductReconciled) take(ctx context.Context, d *order.Draft) error {
	for _, line := range d.Sorted() {
		for try := 0; ; try++ {
			keys := []string{takingsKey(line.SKU), countingKey(line.SKU)}
			answer, err := takeOrWait.Eval(ctx, s.Redis, keys, d.ID, line.Units, s.Deadline.Milliseconds()).Text()
			switch answer {
			case "taken":
			case "sold out":
				err = order.ErrSoldOut
			case "count again":
				err = s.countAgain(ctx, line.SKU)
			case "wait":
				err = order.Pause(ctx, backOff(min(try, 5)))
			default:
				err = noCount(line.SKU, err)
			}
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return fmt.Errorf("sku %q: %w", line.SKU, err)
			}
			if answer == "taken" {
				break
			}
		}
	}
	return nil
}

// write sells as Conditional does, and rolls back unless the counts still know of the taken units.
func (s PreDeductReconciled) write(ctx context.Context, d *order.Draft) error {
	levels, err := s.read(ctx, d) // for the prices
	if err != nil {
		return err
	}
	if err := think(ctx, d); err != nil {
		return err
	}
	return s.Store.InTx(ctx, func(tx order.Tx) error {
		if err := s.lockBuyerAndClaimKey(tx, d); err != nil {
			return err
		}
		// UPDATE ... WHERE available >= ?
		if err := take(tx, stock.Conditional, d, levels, nil); err != nil {
			return err
		}
		if err := s.insert(tx, d, levels, nil); err != nil {
			return err
		}
		for _, line := range d.Sorted() {
			switch known, err := s.Redis.HExists(ctx, takingsKey(line.SKU), d.ID).Result(); {
			case err != nil:
				return noCount(line.SKU, err)
			case !known:
				return errForgotten
			}
		}
		return nil
	})
}

// countAgain makes a new count: the units in the database, less the units of orders that are neither written nor overdue. No
// order of this SKU is written meanwhile.
func (s PreDeductReconciled) countAgain(ctx context.Context, sku string) error {
	err := s.Store.InTx(ctx, func(tx order.Tx) error {
		levels, err := tx.LockLevels([]string{sku})
		if err != nil {
			return err
		}
		taken, err := s.Redis.HKeys(ctx, takingsKey(sku)).Result()
		if err != nil {
			return noCount(sku, err)
		}
		written, err := tx.LockOrders(taken...)
		if err != nil {
			return err
		}
		arguments := []any{levels.SKUs[sku].Available}
		for id := range written {
			arguments = append(arguments, id)
		}
		if err := countUnits.Eval(ctx, s.Redis, []string{takingsKey(sku), countingKey(sku)}, arguments...).Err(); err != nil {
			return noCount(sku, err)
		}
		return order.ErrNothing // the row was locked to keep writers out
	})
	if errors.Is(err, order.ErrNothing) {
		return nil
	}
	return err
}

// noCount is the error of a count. The cause is not wrapped: a transaction would take it for the database's, and run again.
func noCount(sku string, err error) error {
	return fmt.Errorf("%w: count of sku %q: %v", lock.ErrNoAnswer, sku, err) //nolint:errorlint // see above
}

// settle ends what the order has taken: it was written, or is given back, or leads to a new count. If that fails, the
// deadline ends it.
func (s PreDeductReconciled) settle(ctx context.Context, d *order.Draft, how string) {
	for _, line := range d.Lines {
		settleUnits.Eval(context.WithoutCancel(ctx), s.Redis, []string{takingsKey(line.SKU)}, d.ID, how)
	}
}

// CountKeys returns the keys of what Redis has of a SKU's units, by all of these strategies.
func CountKeys(sku string) []string {
	return []string{countKey(sku), takingsKey(sku), countingKey(sku)}
}

// takingsKey is the key of a hash: the units that are left, and by the ID of an order the units that it holds and when it
// is overdue, in milliseconds since 1970. It lives for a minute, since units also come back by orders that expire or are
// cancelled.
func takingsKey(sku string) string { return "takings:{" + Key(sku) + "}" }

// countingKey is the key that lets one buyer at a time count again. It lives for two seconds.
func countingKey(sku string) string { return "counting:{" + Key(sku) + "}" }

const takeOrWaitSource = `
	local function countAgain()
		if redis.call("SET", KEYS[2], ARGV[1], "NX", "PX", 2000) then
			return "count again"
		end
		return "wait"
	end
	local left = tonumber(redis.call("HGET", KEYS[1], "left"))
	if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 1 then
		return "taken" -- by an earlier try of this order
	end
	if not left then
		return countAgain()
	end
	local clock = redis.call("TIME")
	local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
	if left >= tonumber(ARGV[2]) then
		redis.call("HINCRBY", KEYS[1], "left", -ARGV[2])
		redis.call("HSET", KEYS[1], ARGV[1], ARGV[2] .. " " .. string.format("%d", now + ARGV[3]))
		return "taken"
	end
	local answer = "sold out"
	for _, taking in ipairs(redis.call("HVALS", KEYS[1])) do
		local overdue = string.match(taking, " (%d+)")
		if overdue and tonumber(overdue) < now then
			return countAgain()
		elseif overdue then
			answer = "wait"
		end
	end
	return answer`

const countUnitsSource = `
	for i = 2, #ARGV do
		redis.call("HDEL", KEYS[1], ARGV[i])
	end
	local clock = redis.call("TIME")
	local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
	local left, all = tonumber(ARGV[1]), redis.call("HGETALL", KEYS[1])
	for i = 1, #all, 2 do
		local units, overdue = string.match(all[i + 1], "(%d+) (%d+)")
		if overdue and tonumber(overdue) < now then
			redis.call("HDEL", KEYS[1], all[i])
		elseif overdue then
			left = left - units
		end
	end
	redis.call("HSET", KEYS[1], "left", string.format("%d", left))
	redis.call("PEXPIRE", KEYS[1], 60000)
	redis.call("DEL", KEYS[2]) -- whose it is does not matter: the row's lock lets one buyer at a time come here
	return string.format("%d left", left)`

const settleUnitsSource = `
	local units = string.match(redis.call("HGET", KEYS[1], ARGV[1]) or "", "%d+")
	if not units then
		return "unknown"
	end
	redis.call("HDEL", KEYS[1], ARGV[1])
	if ARGV[2] == "give back" and redis.call("HEXISTS", KEYS[1], "left") == 1 then
		redis.call("HINCRBY", KEYS[1], "left", units)
	elseif ARGV[2] == "count again" then
		redis.call("HDEL", KEYS[1], "left")
	end
	return ARGV[2]`

var (
	takeOrWait  = redis.NewScript(takeOrWaitSource)
	countUnits  = redis.NewScript(countUnitsSource)
	settleUnits = redis.NewScript(settleUnitsSource)
)

// Scripts returns the scripts of the counts.
func Scripts() []lock.Script {
	return []lock.Script{
		{Name: "take-units", Script: takeUnits, Source: takeUnitsSource},
		{Name: "take-or-wait", Script: takeOrWait, Source: takeOrWaitSource},
		{Name: "count-units", Script: countUnits, Source: countUnitsSource},
		{Name: "settle-units", Script: settleUnits, Source: settleUnitsSource},
	}
}

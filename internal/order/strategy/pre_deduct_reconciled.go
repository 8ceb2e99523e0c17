package strategy

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
)

// PreDeductReconciled is PreDeduct made right. Beside the count, Redis keeps which orders have taken units and are not
// written yet, and when each is overdue. A buyer is refused only once nobody can give units back; until then it waits. A
// buyer who finds the count missing, or an order overdue, counts again from the database.
//
// Before its COMMIT, a transaction that holds the row of the stock checks that Redis still knows its order. Counting again
// waits for the same row, so that an order which a new count does not know is never written: a count that was lost lets in no
// more buyers than there are units.
type PreDeductReconciled struct {
	Shop
	Redis    redis.UniversalClient
	Deadline time.Duration // for writing an order whose units are taken, in whole seconds
	Patience time.Duration // of a buyer who waits for units that others have taken
}

// errForgotten means that units were counted again without what this order has taken.
var errForgotten = errors.New("the taken units were counted again")

// Sell takes the units from the counts, and then from the database. It starts over when a count was lost in between.
func (s PreDeductReconciled) Sell(ctx context.Context, d *order.Draft) error {
	waiting, cancel := context.WithTimeoutCause(ctx, s.Patience, fmt.Errorf("%w: orders that hold these units are not written yet", order.ErrBusy))
	defer cancel()
	for {
		taken, err := takeCounted(waiting, s, d) // 1. in Redis
		if err == nil {
			err = Conditional{s.Shop}.sellIf(ctx, d, func() error { return s.known(ctx, d) }) // 2. in the database
		}
		if !errors.Is(err, order.ErrUnknownOutcome) { // which is known once the order is overdue
			s.settle(ctx, d, taken, err == nil) // 3. in Redis
		}
		if !errors.Is(err, errForgotten) {
			return err
		}
	}
}

// known returns errForgotten unless Redis knows what the order has taken.
func (s PreDeductReconciled) known(ctx context.Context, d *order.Draft) error {
	for _, line := range d.Sorted() {
		switch err := s.Redis.ZScore(ctx, takingsKey(line.SKU), taking(d, line)).Err(); {
		case errors.Is(err, redis.Nil):
			return errForgotten
		case err != nil:
			return noCount(err)
		}
	}
	return nil
}

func (s PreDeductReconciled) ask(ctx context.Context, d *order.Draft, line order.Line) (answer string, err error) {
	return takeOrWait.Eval(ctx, s.Redis, reconciledKeys(line.SKU), taking(d, line), line.Units, int64(s.Deadline.Seconds())).Text()
}

// load counts again: the units in the database, less the units of orders that are neither written nor overdue. No order of
// this SKU is written meanwhile.
func (s PreDeductReconciled) load(ctx context.Context, line order.Line) error {
	return s.Store.InTx(ctx, func(tx order.Tx) error {
		levels, err := tx.LockLevels([]string{line.SKU})
		if err != nil {
			return err
		}
		takings, err := s.Redis.ZRange(ctx, takingsKey(line.SKU), 0, -1).Result()
		if err != nil {
			return noCount(err)
		}
		written, err := tx.LockOrders(order.Map(takings, takenBy)...)
		if err != nil {
			return err
		}
		arguments := []any{levels.SKUs[line.SKU].Available}
		for id := range written {
			arguments = append(arguments, id)
		}
		if err := countUnits.Eval(ctx, s.Redis, reconciledKeys(line.SKU), arguments...).Err(); err != nil {
			return noCount(err)
		}
		return nil
	})
}

// settle gives taken units back, unless their order is written. If that fails, the order is overdue some day.
func (s PreDeductReconciled) settle(ctx context.Context, d *order.Draft, taken []order.Line, written bool) {
	for _, line := range taken {
		back := line.Units
		if written {
			back = 0
		}
		settleUnits.Eval(context.WithoutCancel(ctx), s.Redis, reconciledKeys(line.SKU), taking(d, line), back)
	}
}

// reconciledKeys are the keys of what Redis has of a SKU's units. The count lives for a minute, since units also come back by
// orders that expire or are cancelled; the key that lets one buyer at a time count again, for two seconds.
func reconciledKeys(sku string) []string {
	return []string{"left:{" + Key(sku) + "}", takingsKey(sku), "counting:{" + Key(sku) + "}"}
}

// takingsKey is the key of a sorted set: what each order has taken, by when it is overdue, in seconds since 1970.
func takingsKey(sku string) string { return "takings:{" + Key(sku) + "}" }

// taking is an element of that set: the units, and the ID of the order.
func taking(d *order.Draft, line order.Line) string { return fmt.Sprintf("%d:%s", line.Units, d.ID) }

func takenBy(taking string) (id string) {
	_, id, _ = strings.Cut(taking, ":")
	return id
}

var (
	//go:embed take_or_wait.lua
	takeOrWaitSource string
	//go:embed count_units.lua
	countUnitsSource string
	//go:embed settle_units.lua
	settleUnitsSource string

	takeOrWait  = newScript("take-or-wait", takeOrWaitSource)
	countUnits  = newScript("count-units", countUnitsSource)
	settleUnits = newScript("settle-units", settleUnitsSource)
)

// Scripts returns the scripts of the counts.
func Scripts() []lock.Script { return []lock.Script{takeUnits, takeOrWait, countUnits, settleUnits} }

// CountKeys returns the keys of what Redis has of a SKU's units, by all of these strategies.
func CountKeys(sku string) []string { return append(reconciledKeys(sku), countKey(sku)) }

package lab

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/order"
)

// Levels of isolation; each is also the name of the strategy that uses it. The shop's own is READ COMMITTED.
const (
	RepeatableRead = "repeatable-read"
	Serializable   = "serializable"
)

// levelKey is the context's key of the isolation level at which a transaction begins, as by sql.TxOptions.
type levelKey struct{}

// isolatedStore has transactions at a level of isolation. It notes how often the database has ended a transaction by a
// deadlock. A request that is stepped is not tried again, so that the same schedule always ends the same way.
type isolatedStore struct {
	order.Store
	level sql.IsolationLevel
}

func (s isolatedStore) InTx(ctx context.Context, fn func(order.Tx) error) error {
	var deadlocks int64
	return s.Store.InTx(context.WithValue(ctx, levelKey{}, s.level), func(tx order.Tx) error {
		err := fn(tx)
		if server, _ := errors.AsType[*mysql.MySQLError](err); server == nil || server.Number != 1213 { // ER_LOCK_DEADLOCK
			return err
		}
		deadlocks++
		mark(ctx, Taken{Step: stepDeadlock, Units: &deadlocks})
		if slices.ContainsFunc(workIn(ctx).of, func(t *Trace) bool { return t.stepped.Load() }) {
			return fmt.Errorf("%w: %s", order.ErrBusy, err.Error()) // not wrapped: InTx would try again
		}
		return err
	})
}

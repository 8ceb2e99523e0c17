package lab

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store"
)

// Levels of isolation; each is also the name of the strategy that uses it. The shop's own is READ COMMITTED.
const (
	RepeatableRead = "repeatable-read"
	Serializable   = "serializable"
)

// openIsolated opens the database once more for each of these levels.
func (l *teaching) openIsolated(ctx context.Context) error {
	l.isolated = map[string]order.Store{}
	if l.MySQL == "" {
		return nil
	}
	for _, level := range []string{RepeatableRead, Serializable} {
		db, err := store.MySQL(ctx, l.MySQL, store.Options{Through: func(c driver.Connector) *sql.DB {
			return l.recorder.Database(sql.OpenDB)(isolated{c, level})
		}})
		if err != nil {
			return err
		}
		l.OnClose(level, db.Close)
		l.isolated[level] = deadlockStore{Store(db)}
	}
	return nil
}

// deadlockStore notes how often the database has ended a transaction by a deadlock. A request that is stepped is not tried
// again, so that the same schedule always ends the same way.
type deadlockStore struct{ order.Store }

// InTx implements order.Store.
func (s deadlockStore) InTx(ctx context.Context, fn func(order.Tx) error) error {
	var deadlocks int64
	return s.Store.InTx(ctx, func(tx order.Tx) error {
		err := fn(tx)
		if server, _ := errors.AsType[*mysql.MySQLError](err); server == nil || server.Number != 1213 { // ER_LOCK_DEADLOCK
			return err
		}
		deadlocks++
		mark(ctx, step{name: stepDeadlock, units: &deadlocks})
		if slices.ContainsFunc(workIn(ctx).of(), func(t *Trace) bool { return t.stepped.Load() }) {
			return fmt.Errorf("%w: %s", order.ErrBusy, err.Error()) // not wrapped: InTx would try again
		}
		return err
	})
}

// isolated makes connections whose transactions have a level of isolation.
type isolated struct {
	driver.Connector
	level string
}

// Connect implements driver.Connector.
func (i isolated) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := i.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	level := strings.ToUpper(strings.ReplaceAll(i.level, "-", " "))
	//nolint:forcetypeassert // the driver's connections do
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL "+level, nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

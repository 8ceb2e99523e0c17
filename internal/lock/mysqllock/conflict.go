package mysqllock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-sql-driver/mysql"
)

// attempts is how often a statement or a transaction is tried that meets others.
const attempts = 8

// conflict reports whether the server rolled back, or should, because of what
// others were doing, so that trying again can help. This is the only place that
// knows the driver.
func conflict(err error) bool {
	var answer *mysql.MySQLError
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.Number {
	case 1213, // ER_LOCK_DEADLOCK
		1020, // ER_CHECKREAD: the row has changed; MariaDB with innodb_snapshot_isolation
		1205: // ER_LOCK_WAIT_TIMEOUT
		return true
	}
	return false
}

// retry calls f until it meets no conflict, a few times. It pauses for a random
// time in between, which doubles, so that those who met do not meet again.
func retry(ctx context.Context, f func() error) error {
	most := 2 * time.Millisecond
	for attempt := 1; ; attempt++ {
		err := f()
		if attempt == attempts || !conflict(err) {
			return err
		}
		select {
		case <-time.After(rand.N(most)):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
		most *= 2
	}
}

package app

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/order"
)

// Limits of settings that a mistyped unit would otherwise turn into a shop that
// hangs or that loses its locks.
const (
	minLockTTL = 100 * time.Millisecond
	maxLockTTL = 10 * time.Minute
	maxWait    = 15 * time.Minute
	minHold    = time.Second
	maxHold    = 30 * 24 * time.Hour

	maxSoldOut = time.Minute // a shop that turns buyers away for longer, while it could sell, is broken

	minKeepKeys = time.Hour // far longer than an order takes to be placed, and than a client asks again
	maxKeepKeys = 90 * 24 * time.Hour

	maxRate     = 100_000
	maxInFlight = 100_000
	maxOpen     = 1_000 // orders of a buyer, which are counted when one is placed

	// takeOver is what a waiting order needs to get the lease of a crashed instance once that has ended.
	takeOver = time.Second
)

// Validate reports everything that is wrong with s, by the names of the command
// line's flags, without asking any server.
func (s Settings) Validate() error {
	return errors.Join(
		validListen("listen", s.Listen),
		s.validOperator(),
		s.ValidateDatabase(),
		s.validRedis(),
		validTTL(s.LockTTL),
		s.validLockWait(),
		within("sold-out-for", s.SoldOutFor, 0, maxSoldOut),
		within("pay-within", s.Hold, minHold, maxHold),
		within("keep-keys", s.KeepKeys, minKeepKeys, maxKeepKeys),
		within("sweep-every", s.SweepEvery, time.Millisecond, maxWait),
		validReconcileAt(s.ReconcileAt),
		within("start-timeout", s.StartTimeout, time.Millisecond, maxWait),
		within("drain-delay", s.DrainDelay, 0, maxWait),
		within("drain", s.DrainTimeout, time.Millisecond, maxWait),
		count("rate-limit", s.RateLimit, 0, maxRate),
		count("max-in-flight", s.MaxInFlight, 1, maxInFlight),
		count("max-open-orders", s.MaxOpenOrders, 0, maxOpen),
		s.validThink(),
		s.validShortTTL(),
		s.validRedlock(),
		s.validZooKeeper(),
		s.validMode(),
	)
}

func within(name string, value, low, high time.Duration) error {
	if value < low || value > high {
		return fmt.Errorf("%s: %v: want %s to %s", name, value, plain(low), plain(high))
	}
	return nil
}

// plain writes 1h for what Go prints as 1h0m0s.
func plain(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func count(name string, value, low, high int) error {
	if value < low || value > high {
		return fmt.Errorf("%s: %d: want %d to %d", name, value, low, high)
	}
	return nil
}

// validTTL wants whole milliseconds because the lock's stores count in them.
func validTTL(ttl time.Duration) error {
	if ttl%time.Millisecond != 0 {
		return fmt.Errorf("lock-ttl: %v: want whole milliseconds", ttl)
	}
	return within("lock-ttl", ttl, minLockTTL, maxLockTTL)
}

// validLockWait wants orders to outlast a crash: one that comes right after it
// finds a lease that has all of its time left.
func (s Settings) validLockWait() error {
	if least := s.LockTTL + takeOver; s.LockWait < least {
		return fmt.Errorf("lock-wait: %v: want at least %v, lock-ttl and a second: an order that comes right after a crash has to wait until the lease of the crashed instance ends", s.LockWait, least)
	}
	return within("lock-wait", s.LockWait, 0, maxWait)
}

func validReconcileAt(at string) error {
	if _, err := parseDaily(at); err != nil && at != off {
		return fmt.Errorf("reconcile-at: %w", err)
	}
	return nil
}

func validListen(name, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%s: %q: want host:port such as 127.0.0.1:8080 or :8080", name, addr)
	}
	return nil
}

// ValidateDatabase is Validate for commands that need the database alone.
func (s Settings) ValidateDatabase() error {
	switch {
	case s.MySQL != "" && s.SQLite != "":
		return errors.New("mysql and sqlite: want one database, not both")
	case s.MySQL == "" && !s.MySQLTLS.IsZero():
		return errors.New("mysql-ca, mysql-cert, mysql-key: are for a MySQL, and none is named")
	case s.MySQL == "" && s.SQLite == "":
		return errors.New("mysql: a database is missing: want a DSN, or the path of a SQLite file")
	case s.MySQL != "":
		_, readable := readDSN(s.MySQL)
		_, secure := mysqlTLS(s)
		return errors.Join(readable, secure)
	}
	return nil
}

func (s Settings) validRedis() error {
	options, err := redisOptions(s.Redis)
	if err != nil {
		return err
	}
	return redisTLS(s, options)
}

func (s Settings) validThink() error {
	if s.Think != 0 && !s.Lab {
		return errors.New("think: is for teaching mode; add --lab or leave it out")
	}
	return within("think", s.Think, 0, order.MaxThinking)
}

package app

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"example.com/shop/internal/order"
)

// Limits of settings that a mistyped unit would otherwise turn into a shop that
// hangs or that loses its locks.
const (
	minLockTTL = 100 * time.Millisecond
	maxLockTTL = 10 * time.Minute
	maxWait    = 15 * time.Minute

	// takeOver is what a waiting order needs to get the lease of a crashed instance once that has ended.
	takeOver = time.Second
)

// Validate reports everything that is wrong with s, by the names of the command
// line's flags, without asking any server.
func (s Settings) Validate() error {
	return errors.Join(
		validListen(s.Listen),
		s.ValidateDatabase(),
		validRedis(s.Redis),
		validTTL(s.LockTTL),
		s.validLockWait(),
		within("start-timeout", s.StartTimeout, time.Millisecond, maxWait),
		within("drain-delay", s.DrainDelay, 0, maxWait),
		within("drain", s.DrainTimeout, time.Millisecond, maxWait),
		s.validThink(),
		s.validMode(),
	)
}

func within(name string, value, low, high time.Duration) error {
	if value < low || value > high {
		return fmt.Errorf("%s: %v: want %v to %v", name, value, low, high)
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

func validListen(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("listen: %q: want host:port such as 127.0.0.1:8080 or :8080", addr)
	}
	return nil
}

// ValidateDatabase is Validate for commands that need the database alone.
func (s Settings) ValidateDatabase() error {
	switch {
	case s.MySQL != "" && s.SQLite != "":
		return errors.New("mysql and sqlite: want one database, not both")
	case s.MySQL == "" && s.SQLite == "":
		return errors.New("mysql: a database is missing: want a DSN, or the path of a SQLite file")
	case s.MySQL != "":
		_, err := readDSN(s.MySQL)
		return err
	}
	return nil
}

func validRedis(address string) error {
	_, err := redisOptions(address)
	return err
}

func (s Settings) validThink() error {
	if s.Think != 0 && !s.Lab {
		return errors.New("think: is for teaching mode; add --lab or leave it out")
	}
	return within("think", s.Think, 0, order.MaxThinking)
}

package app

import (
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store"
)

// Check returns all errors of the settings, each with the name of its command-line flag. It contacts no server.
func (s Settings) Check() error {
	_, reconcile := parseDaily(s.ReconcileAt)
	return errors.Join(
		CheckAddress("listen", s.Listen),
		s.validOperator(),
		s.DatabaseSettings.Check(),
		s.validRedis(),
		within("lock-ttl", s.LockTTL, 100*time.Millisecond, 10*time.Minute),
		s.validLock(),
		within("lock-wait", s.LockWait, 0, 15*time.Minute),
		within("lease-wait", s.LeaseWait, time.Millisecond, 10*time.Second),
		within("pay-within", s.PayWithin, time.Second, 30*24*time.Hour),
		within("pay-extension", s.PayExtension, time.Second, 24*time.Hour),
		within("keep-keys", s.KeepKeys, time.Hour, 90*24*time.Hour), // at least as long as clients retry
		within("drain-delay", s.DrainDelay, 0, 15*time.Minute),
		within("drain", s.Drain, time.Millisecond, 15*time.Minute),
		reconcile,
		within("rate-limit", limit(s.RateLimit, rateLimit), 0, 100_000),
		within("max-open-orders", limit(s.MaxOpenOrders, maxOpen), 0, 1_000), // each order counts them
		within("max-in-flight", s.MaxInFlight, 1, 100_000),
		s.validStrategy(),
		s.validSecrets(),
	)
}

// DropEmpty unsets the shop's environment variables that are empty, as compose files leave them.
func DropEmpty() {
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); value == "" && strings.HasPrefix(name, "SHOP_") {
			_ = os.Unsetenv(name)
		}
	}
}

// RefuseEmpty refuses an empty value on the command line: otherwise, a script whose variable is not set could start a
// shop that shares no locks with the others.
func RefuseEmpty(parsed *kong.Context) error {
	for _, path := range parsed.Path {
		value := path.Positional
		if path.Flag != nil {
			value = path.Flag.Value
		}
		if value == nil {
			continue
		}
		list, several := value.Target.Interface().([]string)
		if value.Target.Kind() == reflect.String && value.Target.Len() == 0 || several && (len(list) == 0 || slices.Contains(list, "")) {
			return fmt.Errorf("%s: is empty: want a value, or leave it out", value.ShortSummary())
		}
	}
	return nil
}

// Check is Settings.Check for commands that need only the database.
func (s DatabaseSettings) Check() error {
	return errors.Join(s.validDatabase(), within("start-timeout", s.StartTimeout, time.Millisecond, 15*time.Minute))
}

func (s DatabaseSettings) validDatabase() error {
	switch {
	case s.MySQL != "" && s.Data != "":
		return errors.New("--mysql (SHOP_MYSQL) and --data (SHOP_DATA): want one database, not both")
	case s.MySQL == "" && s.Data == "":
		return errors.New("which database? Add --mysql DSN or --data DIR")
	case s.MySQL == "" && s.mysqlTLS().given():
		return errors.New("mysql-ca, mysql-cert, mysql-key: are for a MySQL, and none is named")
	case s.MySQL == "":
		return nil
	}
	_, dsn := MySQLAddress(s.MySQL)
	_, files := s.mysqlTLS().config()
	return errors.Join(dsn, files)
}

func within[T int | time.Duration](name string, value, low, high T) error {
	if value < low || value > high {
		return fmt.Errorf("%s: %v: want %v to %v", name, value, low, high)
	}
	return nil
}

// CheckAddress returns an error with the name of the flag unless addr is host:port.
func CheckAddress(name, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%s: %q: want host:port such as 127.0.0.1:8080 or :8080", name, addr)
	}
	return nil
}

func (s Settings) validRedis() error {
	if s.Redis == "" {
		if s.redisTLS().given() {
			return errors.New("redis-ca, redis-cert, redis-key: are for a Redis, and none is named: add --redis")
		}
		return nil
	}
	_, address := readRedis(s.Redis)
	_, files := s.redisTLS().config()
	return errors.Join(address, files)
}

func (s Settings) validLock() error {
	// Stores of locks count in milliseconds.
	if s.LockTTL%time.Millisecond != 0 {
		return fmt.Errorf("lock-ttl: %v: want whole milliseconds", s.LockTTL)
	}
	// Right after a crash, the lease of the crashed instance may have its whole TTL left.
	if least := s.LockTTL + time.Second; s.LockWait < least {
		return fmt.Errorf("lock-wait: %v: want at least %v, lock-ttl and a second: an order that comes right after a crash has to wait until the lease of the crashed instance ends", s.LockWait, least)
	}
	return nil
}

// validOperator requires an operator's token for the operator's API, other than the secret of buyers' tokens, and
// refuses a token without the API.
func (s Settings) validOperator() error {
	switch {
	case s.OperatorListen == "" && s.Hooks.Handler != nil: // which may need the token
		return nil
	case s.OperatorListen == "" && !s.OperatorToken.IsZero():
		return errors.New("operator-token: opens nothing without the operator's API: add --operator-listen 127.0.0.1:8081, or leave out --operator-token-file and SHOP_OPERATOR_TOKEN")
	case s.OperatorListen == "" && !s.PaymentsToken.IsZero():
		return errors.New("payments-token: opens nothing without the operator's API, where payments are taken: add --operator-listen 127.0.0.1:8081, or leave out --payments-token-file and SHOP_PAYMENTS_TOKEN")
	case s.OperatorListen == "":
		return nil
	case s.OperatorToken.IsZero():
		return errors.New("operator-token: is missing, and opens the operator's API; make one with: (umask 077; openssl rand -base64 32 > operator.token), then put it into SHOP_OPERATOR_TOKEN; shop serve also reads the file, by --operator-token-file operator.token")
	case s.OperatorToken == s.TokenSecret:
		return errors.New("operator-token: is the secret of buyers' tokens, which is not for operators: want another one")
	case !s.PaymentsToken.IsZero() && (s.PaymentsToken == s.OperatorToken || s.PaymentsToken == s.TokenSecret):
		return errors.New("payments-token: is also the operator's token or the secret of buyers' tokens: want one that opens payments alone")
	}
	return CheckAddress("operator-listen", s.OperatorListen)
}

func (s Settings) validStrategy() error {
	switch {
	case s.Strategy == "redis" && s.Redis == "" && !s.Hooks.Alone:
		return errors.New("strategy: redis: needs a Redis: add --redis")
	case s.Strategy == "for-update" && s.MySQL == "":
		return errors.New("strategy: for-update: needs MySQL or MariaDB: add --mysql; SQLite has one writer at a time, and no rows to lock")
	}
	return strategy.Check(s.Strategy)
}

// The password of the servers in docker-compose.yml, and the operator's token there. They are published, so production
// must not use them.
const (
	publishedPassword = "lab-only"
	publishedToken    = "ZG9ja2VyLWNvbXBvc2UueW1sIHB1Ymxpc2hlcyBpdC4=" //nolint:gosec // it is meant to be known
)

// validSecrets requires the secret of buyers' tokens, and refuses secrets that are published, unless Hooks.Identify knows
// the buyers.
func (s Settings) validSecrets() error {
	if s.Hooks.Identify != nil {
		return nil
	}
	var errs []error
	published := func(server string, passwords ...string) {
		if slices.Contains(passwords, publishedPassword) {
			errs = append(errs, fmt.Errorf("%s: its password is %q, which docker-compose.yml publishes; set another", server, publishedPassword))
		}
	}
	// Addresses that cannot be parsed are reported by the other checks.
	if dsn, err := store.ReadDSN(s.MySQL); err == nil { // all hosts have the same
		published("mysql", dsn[0].Passwd)
	}
	if r, err := readRedis(s.Redis); err == nil {
		published("redis", r.passwords...)
	}
	if s.OperatorToken.Is(publishedToken) {
		errs = append(errs, errors.New("operator-token: is the one that docker-compose.yml publishes; set another"))
	}
	if s.TokenSecret.IsZero() {
		errs = append(errs, errors.New("token-secret: is missing, and buyers are known by what it signs; make one with: (umask 077; openssl rand -base64 32 > token.secret), then add --token-secret-file token.secret, or put it into SHOP_TOKEN_SECRET; the same for all instances"))
	}
	return errors.Join(errs...)
}

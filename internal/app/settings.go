package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/observe"
	"example.com/shop/internal/store"
)

// DatabaseSettings choose the database. kong reads them from flags and environment variables, as the tags say.
type DatabaseSettings struct {
	MySQL        string        `name:"mysql" xor:"database" group:"Database" env:"SHOP_MYSQL" placeholder:"DSN" help:"MySQL or MariaDB: user:password@tcp(host:3306)/database. With several hosts, tcp(db1:3306,db2:3306,db3:3306), the shop finds the one that takes writes."`
	Data         string        `xor:"database" group:"Database" env:"SHOP_DATA" placeholder:"DIR" help:"Data folder of a shop without MySQL. The SQLite file is kept in it."`
	MySQLTLS     TLSFiles      `embed:"" prefix:"mysql-" envprefix:"SHOP_MYSQL_" group:"Database" set:"server=MySQL"`
	StartTimeout time.Duration `env:"SHOP_START_TIMEOUT" default:"30s" help:"How long to wait at the start for servers that do not answer, and in shop migrate for sessions that use a table: 1ms to 15m."`

	// Log is the logger; nil logs nothing. The lines of a request get the request's id.
	Log *slog.Logger `kong:"-"`
}

// TLSFiles are the PEM files for the TLS connections to one server. If any is given, TLS is required.
type TLSFiles struct {
	CA   string `env:"CA" placeholder:"FILE" help:"Require TLS of ${server}. The server's certificate must match its host name, and be signed by a CA in this PEM file. If the system already trusts the CA, use ?tls=true in the DSN of MySQL, or rediss:// for Redis, instead."`
	Cert string `env:"CERT" placeholder:"FILE" help:"PEM file with the client certificate, if ${server} asks for one."`
	Key  string `env:"KEY" placeholder:"FILE" help:"PEM file with the private key of the client certificate."`
}

// Settings configure a shop. Start from Default and change what differs.
type Settings struct {
	DatabaseSettings

	Strategy string `enum:"lanes,batch,redis,conditional,optimistic,for-update" env:"SHOP_STRATEGY" default:"lanes" help:"How to sell: ${enum}. lanes sells all waiting orders in one transaction, under the leases of their SKUs; batch does the same without leases. redis needs --redis, for-update needs --mysql."`

	Listen string `env:"SHOP_LISTEN" default:"127.0.0.1:8080" help:"Address to serve on, host:port. Without a host: all addresses. Port 0: a free port."`

	Redis    string   `group:"Redis" env:"SHOP_REDIS" placeholder:"ADDR" help:"Redis for the locks and the rate limits: host:port or a redis:// URL, with ?master_name=NAME&addr=HOST:PORT for Sentinels, or with ?addr=HOST:PORT or ?cluster=true for a Cluster. Without --redis, both are in this process, even with --mysql."`
	RedisTLS TLSFiles `embed:"" prefix:"redis-" envprefix:"SHOP_REDIS_" group:"Redis" set:"server=Redis"`

	OperatorListen string `group:"Security" env:"SHOP_OPERATOR_LISTEN" placeholder:"ADDR" help:"Address of the operator's API, with metrics and profiles, host:port."`

	// The default limits exceed the requests that a person can click and the orders that an honest buyer leaves unpaid. A
	// program may set other defaults.
	RateLimit     int `group:"Limits" env:"SHOP_RATE_LIMIT" default:"${rate_limit=20}" help:"Requests per second with which one buyer may place, pay or cancel orders, over all instances; five times as many in a burst. One instance handles at most one burst of the buyer's requests at a time, reads included. Further requests get a 429. 1 to 100000; 0 switches both limits off."`
	MaxOpenOrders int `group:"Limits" env:"SHOP_MAX_OPEN_ORDERS" default:"${max_open_orders=10}" help:"Pending orders that one buyer may have, over all instances. A further order gets a 429. 1 to 1000; 0 for no limit."`
	MaxInFlight   int `group:"Limits" env:"SHOP_MAX_IN_FLIGHT" default:"12000" help:"Requests that may run or wait in this instance at a time, on each listener. A further request gets a 503. 1 to 100000; a waiting request takes about 50 KB."`

	LockTTL      time.Duration `name:"lock-ttl" group:"Life cycle" env:"SHOP_LOCK_TTL" default:"10s" help:"How long the leases of a crashed instance last. Until then, no other instance runs the jobs or, with the strategy redis, sells the SKUs of these leases. 100ms to 10m."`
	LockWait     time.Duration `group:"Life cycle" env:"SHOP_LOCK_WAIT" default:"15s" help:"How long an order waits for the lock of its SKU, with the strategy redis. A request may take 20s longer. At least --lock-ttl plus 1s, so that buyers outwait the lease of a crashed instance; at most 15m."`
	LeaseWait    time.Duration `group:"Life cycle" env:"SHOP_LEASE_WAIT" default:"500ms" help:"How long the strategy lanes waits for the lease of a SKU. Then it sells without the lease, as it does if Redis does not answer. 1ms to 10s."`
	PayWithin    time.Duration `group:"Life cycle" env:"SHOP_PAY_WITHIN" default:"15m" help:"How long an unpaid order holds its units. Then it expires, and the units are for sale again. 1s to 720h."`
	PayExtension time.Duration `group:"Life cycle" env:"SHOP_PAY_EXTENSION" default:"15m" help:"How much longer an order holds its units if the payment service extends the hold. The service may extend it once, while a payment is under way. 1s to 24h."`
	KeepKeys     time.Duration `group:"Life cycle" env:"SHOP_KEEP_KEYS" default:"24h" help:"How long an Idempotency-Key is kept. A repeat within that time gets the first answer; a later repeat is a new request. 1h to 2160h."`
	ReconcileAt  string        `group:"Life cycle" env:"SHOP_RECONCILE_AT" default:"03:00" help:"Time of day, in UTC, at which one of the instances audits all SKUs and logs the differences; or off."`
	IdleTimeout  time.Duration `group:"Life cycle" env:"SHOP_IDLE_TIMEOUT" default:"620s" help:"How long a connection without a request stays open, on each listener. Longer than a load balancer keeps it: the load balancer must close it first. 1s to 1h."`
	DrainDelay   time.Duration `group:"Life cycle" env:"SHOP_DRAIN_DELAY" default:"0s" help:"On shutdown: how long readiness fails before connections are refused, so that load balancers notice. 0s to 15m."`
	Drain        time.Duration `group:"Life cycle" env:"SHOP_DRAIN" default:"20s" help:"On shutdown: how long orders in flight may take. 1ms to 15m."`

	// TokenSecret signs buyers' tokens. The operator sends OperatorToken, which OperatorListen requires. The payment
	// service sends PaymentsToken to the same listener; without PaymentsToken, the listener takes no payments.
	TokenSecret   auth.Secret `kong:"-"`
	OperatorToken auth.Secret `kong:"-"`
	PaymentsToken auth.Secret `kong:"-"`

	// BuyersPay lets buyers pay without a payment service, as in a demonstration.
	BuyersPay bool `kong:"-"`

	// SweepEvery is the time between two runs of the expiry job; 0 means a second.
	SweepEvery time.Duration `kong:"-"`
}

// Default returns the settings without flags and environment variables. The locks are in this process. There is no
// database: set Data or MySQL.
func Default() Settings {
	var s Settings
	parser := kong.Must(&s, kong.PostBuild(func(k *kong.Kong) error {
		for _, flag := range k.Model.Flags {
			flag.Tag.Envs = nil
		}
		return nil
	}))
	if _, err := parser.Parse(nil); err != nil {
		panic(err) // a default in a tag is wrong
	}
	return s
}

// DatabaseFile returns the path of the database file that a shop keeps in its folder.
func DatabaseFile(data string) string { return filepath.Join(data, "shop.db") }

func (s DatabaseSettings) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(observe.NewHandler(s.Log.Handler()))
}

// Check returns all errors in the settings of a shop with these hooks. Each error names its flag. Check
// contacts no server.
func Check(s Settings, h Hooks) error {
	c := checks{s.checkDatabase(), CheckAddress("listen", s.Listen)}
	if s.OperatorListen != "" {
		c = append(c, CheckAddress("operator-listen", s.OperatorListen))
	}
	if s.Redis != "" {
		_, address := readRedis(s.Redis)
		_, files := s.RedisTLS.config("redis")
		c = append(c, address, files)
	}
	_, reconcile := parseDaily(s.ReconcileAt)
	c = append(c, reconcile,
		within("lock-ttl", s.LockTTL, 100*time.Millisecond, 10*time.Minute),
		within("lock-wait", s.LockWait, s.LockTTL+time.Second, 15*time.Minute), // an order outwaits the lease of a crashed holder
		within("lease-wait", s.LeaseWait, time.Millisecond, 10*time.Second),
		within("pay-within", s.PayWithin, time.Second, 30*24*time.Hour),
		within("pay-extension", s.PayExtension, time.Second, 24*time.Hour),
		within("keep-keys", s.KeepKeys, time.Hour, 90*24*time.Hour), // at least as long as clients retry
		within("idle-timeout", s.IdleTimeout, time.Second, time.Hour),
		within("drain-delay", s.DrainDelay, 0, 15*time.Minute),
		within("drain", s.Drain, time.Millisecond, 15*time.Minute),
		within("rate-limit", s.RateLimit, 0, 100_000),
		within("max-open-orders", s.MaxOpenOrders, 0, 1_000), // each new order counts the buyer's open orders
		within("max-in-flight", s.MaxInFlight, 1, 100_000),
	)
	c.refuse(s.LockTTL%time.Millisecond != 0, "lock-ttl: %v: want whole milliseconds", s.LockTTL) // the unit of Redis
	c.refuse(s.Redis == "" && s.RedisTLS != TLSFiles{}, "redis-ca, redis-cert, redis-key: there is no Redis: add --redis, or leave them out")
	c.refuse(s.Strategy == "redis" && s.Redis == "" && !h.Alone, "strategy: redis: needs a Redis: add --redis")
	c.refuse(s.Strategy == "for-update" && s.MySQL == "",
		"strategy: for-update: needs MySQL or MariaDB: add --mysql; SQLite has one writer at a time and no row locks")
	return errors.Join(append(c, checkSecrets(s, h))...)
}

func (s DatabaseSettings) checkDatabase() error {
	c := checks{within("start-timeout", s.StartTimeout, time.Millisecond, 15*time.Minute)}
	c.refuse(s.MySQL != "" && s.Data != "", "--mysql (SHOP_MYSQL) and --data (SHOP_DATA): want one database, not both")
	c.refuse(s.MySQL == "" && s.Data == "", "which database? Add --mysql DSN or --data DIR")
	c.refuse(s.MySQL == "" && s.MySQLTLS != TLSFiles{}, "mysql-ca, mysql-cert, mysql-key: there is no MySQL: add --mysql, or leave them out")
	if s.MySQL != "" && s.Data == "" {
		_, dsn := MySQLAddress(s.MySQL)
		_, files := s.MySQLTLS.config("mysql")
		c = append(c, dsn, files)
	}
	return errors.Join(c...)
}

// docker-compose.yml publishes the servers' password and the operator's token, so production must not use them.
const (
	publishedPassword = "lab-only"
	publishedToken    = "ZG9ja2VyLWNvbXBvc2UueW1sIHB1Ymxpc2hlcyBpdC4=" //nolint:gosec // it is meant to be known
)

// checkSecrets requires the operator's token if there is an operator's API, and refuses the token if there is none.
// Unless a hook identifies the buyers, it also requires the secret of their tokens, and refuses published secrets.
func checkSecrets(s Settings, h Hooks) error {
	var c checks
	listens, operator, payments := s.OperatorListen != "", !s.OperatorToken.IsZero(), !s.PaymentsToken.IsZero()
	c.refuse(!listens && (operator || payments) && h.Handler == nil,
		"operator-token, payments-token: are of no use without the operator's API: add --operator-listen "+
			"127.0.0.1:8081, or leave out the files of both tokens, SHOP_OPERATOR_TOKEN and SHOP_PAYMENTS_TOKEN")
	c.refuse(listens && !operator,
		"operator-token: is missing, and the operator's API needs it; make one with: (umask 077; "+
			"openssl rand -base64 32 > operator.token), then put it into SHOP_OPERATOR_TOKEN; "+
			"shop serve also reads the file, by --operator-token-file operator.token")
	c.refuse(operator && s.OperatorToken == s.TokenSecret, "operator-token: is also the secret of buyers' tokens: want another token")
	c.refuse(payments && (s.PaymentsToken == s.OperatorToken || s.PaymentsToken == s.TokenSecret),
		"payments-token: is also the operator's token or the secret of buyers' tokens: want another token")
	if h.Identify != nil {
		return errors.Join(c...)
	}
	// The other checks report addresses that cannot be parsed.
	const published = "%s: docker-compose.yml publishes the password %q: set another"
	dsn, err := store.ReadDSN(s.MySQL)
	c.refuse(err == nil && dsn[0].Passwd == publishedPassword, published, "mysql", publishedPassword) // all hosts have one password
	redis, err := readRedis(s.Redis)
	c.refuse(err == nil && slices.Contains(redis.passwords, publishedPassword), published, "redis", publishedPassword)
	c.refuse(s.OperatorToken.Is(publishedToken), "operator-token: docker-compose.yml publishes this token: set another")
	c.refuse(s.TokenSecret.IsZero(),
		"token-secret: is missing; it signs the tokens of buyers; make one with: (umask 077; "+
			"openssl rand -base64 32 > token.secret), then add --token-secret-file token.secret, "+
			"or put it into SHOP_TOKEN_SECRET; all instances need the same secret")
	return errors.Join(c...)
}

// checks has an error, or nil, for each check of the settings.
type checks []error

func (c *checks) refuse(wrong bool, format string, a ...any) {
	if wrong {
		*c = append(*c, fmt.Errorf(format, a...))
	}
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

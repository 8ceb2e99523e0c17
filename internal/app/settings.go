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

// DatabaseSettings choose the database. The tags make them flags and environment variables of a command line.
type DatabaseSettings struct {
	MySQL        string        `name:"mysql" xor:"database" group:"Database" env:"SHOP_MYSQL" placeholder:"DSN" help:"MySQL or MariaDB: user:password@tcp(host:3306)/database. Of several hosts, tcp(db1:3306,db2:3306,db3:3306), the one that takes writes is found."`
	Data         string        `xor:"database" group:"Database" env:"SHOP_DATA" placeholder:"DIR" help:"Folder of a shop without MySQL: its SQLite file is kept there."`
	MySQLTLS     TLSFiles      `embed:"" prefix:"mysql-" envprefix:"SHOP_MYSQL_" group:"Database" set:"server=MySQL"`
	StartTimeout time.Duration `env:"SHOP_START_TIMEOUT" default:"30s" help:"How long to wait for servers that do not answer yet: 1ms to 15m."`

	// Log is the logger; nil for none. Lines of a request get its id.
	Log *slog.Logger `kong:"-"`
}

// TLSFiles are the PEM files for the TLS connections to one server. Any of them requires TLS.
type TLSFiles struct {
	CA   string `env:"CA" placeholder:"FILE" help:"Require TLS of ${server}, and a certificate for its host name that a CA in this PEM file signed. For CAs that the system trusts, add ?tls=true to the DSN of a MySQL, or write rediss:// for a Redis, instead."`
	Cert string `env:"CERT" placeholder:"FILE" help:"Certificate to show to a ${server} that asks for one, PEM."`
	Key  string `env:"KEY" placeholder:"FILE" help:"Private key of that certificate."`
}

// Settings say how a shop runs. Start from Default and change what differs.
type Settings struct {
	DatabaseSettings

	Strategy string `enum:"lanes,batch,redis,conditional,optimistic,for-update" env:"SHOP_STRATEGY" default:"lanes" help:"How to sell: ${enum}. lanes has a commit for all orders that wait, under the leases of their SKUs, batch the same without leases; for-update needs --mysql."`

	Listen string `env:"SHOP_LISTEN" default:"127.0.0.1:8080" help:"Address to serve on, host:port; without a host on all addresses, port 0 takes a free one."`

	Redis    string   `group:"Redis" env:"SHOP_REDIS" placeholder:"ADDR" help:"Redis that keeps the locks and counts for the rate limits: host:port or a redis:// URL; of Sentinels with ?master_name=NAME&addr=HOST:PORT, of a Cluster with ?addr=HOST:PORT or ?cluster=true. Without it both are in this process, also with --mysql."`
	RedisTLS TLSFiles `embed:"" prefix:"redis-" envprefix:"SHOP_REDIS_" group:"Redis" set:"server=Redis"`

	OperatorListen string `group:"Security" env:"SHOP_OPERATOR_LISTEN" placeholder:"ADDR" help:"Address of the operator's API, metrics and profiles, host:port."`

	// The defaults: more than a person can click, and than an honest buyer leaves unpaid. Another program may have others.
	RateLimit     int `group:"Limits" env:"SHOP_RATE_LIMIT" default:"${rate_limit=20}" help:"Requests per second that one buyer may send to place, pay or cancel orders, over all instances, and five times as many in a burst; as many as in a burst, reads among them, may be in progress at a time on one instance; more get a 429. 1 to 100000, 0 for neither limit."`
	MaxOpenOrders int `group:"Limits" env:"SHOP_MAX_OPEN_ORDERS" default:"${max_open_orders=10}" help:"Orders that one buyer may have pending, over all instances; one more gets a 429. 1 to 1000, 0 for no limit."`
	MaxInFlight   int `group:"Limits" env:"SHOP_MAX_IN_FLIGHT" default:"12000" help:"Requests that this instance works on or lets wait at a time; one more gets a 503. 1 to 100000; a waiting one takes about 50 KB."`

	LockTTL      time.Duration `name:"lock-ttl" group:"Life cycle" env:"SHOP_LOCK_TTL" default:"10s" help:"How long a crashed instance keeps its leases: others wait as long to run its jobs and, with the strategy redis, to sell its SKUs. 100ms to 10m."`
	LockWait     time.Duration `group:"Life cycle" env:"SHOP_LOCK_WAIT" default:"15s" help:"How long an order of the strategy redis waits for the lock of its SKU, and a request 20s longer; more than --lock-ttl by a second at least, or buyers who come right after a crash give up too early. At most 15m."`
	LeaseWait    time.Duration `group:"Life cycle" env:"SHOP_LEASE_WAIT" default:"500ms" help:"How long the strategy lanes waits for the lease of a SKU; then it sells without, as when Redis does not answer. 1ms to 10s."`
	PayWithin    time.Duration `group:"Life cycle" env:"SHOP_PAY_WITHIN" default:"15m" help:"How long an order holds its units unpaid; then it expires and they are for sale again: 1s to 720h."`
	PayExtension time.Duration `group:"Life cycle" env:"SHOP_PAY_EXTENSION" default:"15m" help:"How much longer an order holds its units when the payment service extends its hold, once, while a payment is under way: 1s to 24h."`
	KeepKeys     time.Duration `group:"Life cycle" env:"SHOP_KEEP_KEYS" default:"24h" help:"How long an Idempotency-Key is kept: a repeat within that time gets the first answer, a later one is a new request. 1h to 2160h."`
	ReconcileAt  string        `group:"Life cycle" env:"SHOP_RECONCILE_AT" default:"03:00" help:"When to audit all SKUs and log what differs, every day, on one of the instances: a time in UTC, or off."`
	DrainDelay   time.Duration `group:"Life cycle" env:"SHOP_DRAIN_DELAY" default:"0s" help:"On shutdown: how long readiness fails before connections are refused, for load balancers; 0s refuses them at once, 15m at most."`
	Drain        time.Duration `group:"Life cycle" env:"SHOP_DRAIN" default:"20s" help:"On shutdown: how long orders in flight may take: 1ms to 15m."`

	// TokenSecret signs buyers' tokens. OperatorToken is what the operator shows; OperatorListen needs one. PaymentsToken is
	// what the payment service shows, on the same listener; without it no payment is taken there.
	TokenSecret   auth.Secret `kong:"-"`
	OperatorToken auth.Secret `kong:"-"`
	PaymentsToken auth.Secret `kong:"-"`

	// BuyersPay lets buyers pay on their own word, as in a demonstration.
	BuyersPay bool `kong:"-"`

	// SweepEvery is the time between looks for orders to expire; 0 means a second.
	SweepEvery time.Duration `kong:"-"`
}

// Default returns the settings of a command line without flags and environment variables: locks in this process, and no
// database yet: set Data or MySQL.
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

// Check returns all errors of the settings of a shop with these hooks, each with its flag's name. It contacts no server.
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
		within("lock-wait", s.LockWait, s.LockTTL+time.Second, 15*time.Minute), // or an order gives up before a crashed holder's lease ends
		within("lease-wait", s.LeaseWait, time.Millisecond, 10*time.Second),
		within("pay-within", s.PayWithin, time.Second, 30*24*time.Hour),
		within("pay-extension", s.PayExtension, time.Second, 24*time.Hour),
		within("keep-keys", s.KeepKeys, time.Hour, 90*24*time.Hour), // at least as long as clients retry
		within("drain-delay", s.DrainDelay, 0, 15*time.Minute),
		within("drain", s.Drain, time.Millisecond, 15*time.Minute),
		within("rate-limit", s.RateLimit, 0, 100_000),
		within("max-open-orders", s.MaxOpenOrders, 0, 1_000), // each order counts them
		within("max-in-flight", s.MaxInFlight, 1, 100_000),
	)
	c.refuse(s.LockTTL%time.Millisecond != 0, "lock-ttl: %v: want whole milliseconds", s.LockTTL) // stores of locks count in them
	c.refuse(s.Redis == "" && s.RedisTLS != TLSFiles{}, "redis-ca, redis-cert, redis-key: are for a Redis, and none is named: add --redis")
	c.refuse(s.Strategy == "redis" && s.Redis == "" && !h.Alone, "strategy: redis: needs a Redis: add --redis")
	c.refuse(s.Strategy == "for-update" && s.MySQL == "", "strategy: for-update: needs MySQL or MariaDB: add --mysql; SQLite has one writer at a time, and no rows to lock")
	return errors.Join(append(c, checkSecrets(s, h))...)
}

func (s DatabaseSettings) checkDatabase() error {
	c := checks{within("start-timeout", s.StartTimeout, time.Millisecond, 15*time.Minute)}
	c.refuse(s.MySQL != "" && s.Data != "", "--mysql (SHOP_MYSQL) and --data (SHOP_DATA): want one database, not both")
	c.refuse(s.MySQL == "" && s.Data == "", "which database? Add --mysql DSN or --data DIR")
	c.refuse(s.MySQL == "" && s.MySQLTLS != TLSFiles{}, "mysql-ca, mysql-cert, mysql-key: are for a MySQL, and none is named")
	if s.MySQL != "" && s.Data == "" {
		_, dsn := MySQLAddress(s.MySQL)
		_, files := s.MySQLTLS.config("mysql")
		c = append(c, dsn, files)
	}
	return errors.Join(c...)
}

// The servers' password and the operator's token in docker-compose.yml. They are published: not for production.
const (
	publishedPassword = "lab-only"
	publishedToken    = "ZG9ja2VyLWNvbXBvc2UueW1sIHB1Ymxpc2hlcyBpdC4=" //nolint:gosec // it is meant to be known
)

// checkSecrets requires an operator's token for the operator's API, and refuses one without it; unless hooks take their
// place, it also requires the secret of buyers' tokens and refuses secrets that are published.
func checkSecrets(s Settings, h Hooks) error {
	var c checks
	listens, operator, payments := s.OperatorListen != "", !s.OperatorToken.IsZero(), !s.PaymentsToken.IsZero()
	c.refuse(!listens && (operator || payments) && h.Handler == nil,
		"operator-token, payments-token: open nothing without the operator's API, where payments are taken: add --operator-listen 127.0.0.1:8081, or leave out their files and SHOP_OPERATOR_TOKEN, SHOP_PAYMENTS_TOKEN")
	c.refuse(listens && !operator, "operator-token: is missing, and opens the operator's API; make one with: (umask 077; openssl rand -base64 32 > operator.token), then put it into SHOP_OPERATOR_TOKEN; shop serve also reads the file, by --operator-token-file operator.token")
	c.refuse(operator && s.OperatorToken == s.TokenSecret, "operator-token: is the secret of buyers' tokens, which is not for operators: want another one")
	c.refuse(payments && (s.PaymentsToken == s.OperatorToken || s.PaymentsToken == s.TokenSecret),
		"payments-token: is also the operator's token or the secret of buyers' tokens: want one that opens payments alone")
	if h.Identify != nil {
		return errors.Join(c...)
	}
	// Addresses that cannot be parsed are reported by the other checks.
	const published = "%s: its password is %q, which docker-compose.yml publishes; set another"
	dsn, err := store.ReadDSN(s.MySQL)
	c.refuse(err == nil && dsn[0].Passwd == publishedPassword, published, "mysql", publishedPassword) // all hosts have the same
	redis, err := readRedis(s.Redis)
	c.refuse(err == nil && slices.Contains(redis.passwords, publishedPassword), published, "redis", publishedPassword)
	c.refuse(s.OperatorToken.Is(publishedToken), "operator-token: is the one that docker-compose.yml publishes; set another")
	c.refuse(s.TokenSecret.IsZero(), "token-secret: is missing, and buyers are known by what it signs; make one with: (umask 077; openssl rand -base64 32 > token.secret), then add --token-secret-file token.secret, or put it into SHOP_TOKEN_SECRET; the same for all instances")
	return errors.Join(c...)
}

// checks are the errors of settings, nil for what is right.
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

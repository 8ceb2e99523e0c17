package app

import (
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/observe"
)

// DatabaseSettings choose the database. The tags make them flags and environment variables of a command line.
type DatabaseSettings struct {
	MySQL        string        `name:"mysql" xor:"database" group:"Database" env:"SHOP_MYSQL" placeholder:"DSN" help:"MySQL or MariaDB: user:password@tcp(host:3306)/database. Of several hosts, tcp(db1:3306,db2:3306,db3:3306), the one that takes writes is found."`
	Data         string        `xor:"database" group:"Database" env:"SHOP_DATA" placeholder:"DIR" help:"Folder of a shop without MySQL: its SQLite file is kept there."`
	MySQLCA      string        `name:"mysql-ca" group:"Database" env:"SHOP_MYSQL_CA" placeholder:"FILE" help:"Require TLS of MySQL, and a certificate for its host name that a CA in this PEM file signed. For CAs that the system trusts add ?tls=true to the DSN instead."`
	MySQLCert    string        `name:"mysql-cert" group:"Database" env:"SHOP_MYSQL_CERT" placeholder:"FILE" help:"Certificate to show to a MySQL that asks for one, PEM."`
	MySQLKey     string        `name:"mysql-key" group:"Database" env:"SHOP_MYSQL_KEY" placeholder:"FILE" help:"Private key of --mysql-cert."`
	StartTimeout time.Duration `env:"SHOP_START_TIMEOUT" default:"30s" help:"How long to wait for servers that do not answer yet: 1ms to 15m."`

	// Log is the logger; nil for none. Lines of a request get its id.
	Log *slog.Logger `kong:"-"`
}

// LogSettings choose how and what a program logs.
type LogSettings struct {
	LogFormat string     `env:"SHOP_LOG_FORMAT" enum:"text,json" default:"text" help:"How to log: text or json."`
	LogLevel  slog.Level `env:"SHOP_LOG_LEVEL" default:"info" help:"What to log: debug, info, warn or error."`
}

// Logger returns a logger that writes to w.
func (s LogSettings) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// Settings say how a shop runs. Start from Default and change what differs.
type Settings struct {
	DatabaseSettings

	Strategy string `enum:"lanes,batch,redis,conditional,optimistic,for-update" env:"SHOP_STRATEGY" default:"lanes" help:"How to sell: ${enum}. lanes has a commit for all orders that wait, under the leases of their SKUs, batch the same without leases; for-update needs --mysql."`

	Listen string `env:"SHOP_LISTEN" default:"127.0.0.1:8080" help:"Address to serve on, host:port; without a host on all addresses, port 0 takes a free one."`

	Redis     string `group:"Redis" env:"SHOP_REDIS" placeholder:"ADDR" help:"Redis that keeps the locks and counts for the rate limits: host:port or a redis:// URL; of Sentinels with ?master_name=NAME&addr=HOST:PORT, of a Cluster with ?addr=HOST:PORT or ?cluster=true. Without it both are in this process, also with --mysql."`
	RedisCA   string `group:"Redis" env:"SHOP_REDIS_CA" placeholder:"FILE" help:"Require TLS of Redis, and a certificate for its host name that a CA in this PEM file signed. For CAs that the system trusts write --redis as a rediss:// URL instead."`
	RedisCert string `group:"Redis" env:"SHOP_REDIS_CERT" placeholder:"FILE" help:"Certificate to show to a Redis that asks for one, PEM."`
	RedisKey  string `group:"Redis" env:"SHOP_REDIS_KEY" placeholder:"FILE" help:"Private key of --redis-cert."`

	OperatorListen string `group:"Security" env:"SHOP_OPERATOR_LISTEN" placeholder:"ADDR" help:"Address of the operator's API, metrics and profiles, host:port."`

	RateLimit     *int `group:"Limits" env:"SHOP_RATE_LIMIT" placeholder:"N" help:"Requests per second that one buyer may send to place, pay or cancel orders, over all instances, and five times as many in a burst; as many as in a burst, reads among them, may be in progress at a time on one instance; more get a 429. 1 to 100000, 0 for neither limit."`
	MaxOpenOrders *int `group:"Limits" env:"SHOP_MAX_OPEN_ORDERS" placeholder:"N" help:"Orders that one buyer may have pending, over all instances; one more gets a 429. 1 to 1000, 0 for no limit."`
	MaxInFlight   int  `group:"Limits" env:"SHOP_MAX_IN_FLIGHT" default:"12000" help:"Requests that this instance works on or lets wait at a time; one more gets a 503. 1 to 100000; a waiting one takes about 50 KB."`

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

	// Hooks extend the shop; the zero value does not.
	Hooks Hooks `kong:"-"`
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

// Default limits of buyers. rateLimit is more than a person can click and far below the capacity of an instance;
// maxOpen is more than an honest buyer leaves unpaid.
const (
	rateLimit = 20
	maxOpen   = 10
)

// limit returns the given limit or the default.
func limit(given *int, standard int) int {
	if given != nil {
		return *given
	}
	return standard
}

// DatabaseFile returns the path of the database file that a shop keeps in its folder.
func DatabaseFile(data string) string { return filepath.Join(data, "shop.db") }

func (s DatabaseSettings) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(observe.NewHandler(s.Log.Handler()))
}

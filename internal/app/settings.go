package app

import (
	"log/slog"
	"time"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/logs"
	"example.com/shop/internal/order"
	"example.com/shop/internal/tlsclient"
)

// Settings say how a shop runs. Start from Default and change what differs.
type Settings struct {
	// Listen is the address to serve on, host:port. Port 0 takes a free one;
	// Shop.Addr tells which.
	Listen string

	// OperatorListen is the address of the operator's API, as Listen; empty for
	// none. Shop.OperatorAddr tells which port was taken.
	OperatorListen string

	// MySQL is the DSN of a MySQL or MariaDB server, as go-sql-driver reads it:
	// user:password@tcp(host:3306)/database. Its schema must have been migrated.
	MySQL string

	// SQLite is the path of a database file, used if MySQL is empty. It is
	// created and migrated as needed.
	SQLite string

	// Redis is host:port or a redis:// or rediss:// URL.
	Redis string

	// RedisEmbedded says that Redis is an Embedded's, in this process: the log does
	// not call it a server.
	RedisEmbedded bool

	// MySQLTLS and RedisTLS, unless they name no file, require TLS, whether the
	// DSN or the URL asks for it or not. A server without it is refused.
	MySQLTLS, RedisTLS tlsclient.Files

	// Lab is the teaching mode: requests choose their strategy and think time.
	Lab bool

	// Redlock are the addresses, as Redis, of an odd number of servers that know
	// nothing of each other, for the teaching mode's strategy of that name; none: it
	// is not offered.
	Redlock []string

	// ZooKeeper is host:port of a server, or of several with commas between them,
	// for the teaching mode's strategy of that name; empty: it is not offered.
	ZooKeeper string

	// Think is the teaching mode's pause between reading stock and writing it,
	// for requests that name none.
	Think time.Duration

	// LabShortTTL is the TTL of the wrong locks whose mistake shows when the work
	// takes longer than that; 0 means one that is shorter than an order takes.
	LabShortTTL time.Duration

	// TokenSecret signs the tokens by which buyers are known. In teaching mode it
	// is the zero value, and buyers name themselves; a shop for buyers needs one.
	TokenSecret auth.Secret

	// OperatorToken is what the operator shows; OperatorListen needs one.
	OperatorToken auth.Secret

	// RateLimit is how many requests per second one buyer may send that change
	// something, over all instances, and five times as many in a burst; 0 means no limit.
	RateLimit int

	// RateLimitFailsClosed refuses such requests while Redis cannot count them,
	// instead of letting them through.
	RateLimitFailsClosed bool

	MaxInFlight int // requests that this instance works on or lets wait at a time

	MaxOpenOrders int // pending orders that one buyer may have, over all instances; 0 means no limit

	LockTTL  time.Duration // how long a crashed holder keeps its lease
	LockWait time.Duration // how long an order waits for the lease; longer than LockTTL by a second at least

	// SoldOutFor is how long an instance refuses orders of a SKU that had nothing
	// left without asking anybody; 0 for not at all. It is told when units come back;
	// this bounds how long it may be wrong where the message is lost.
	SoldOutFor time.Duration

	Hold       time.Duration // how long an order holds its units unpaid
	SweepEvery time.Duration // between looks for orders whose time is over
	KeepKeys   time.Duration // how long an idempotency key is kept

	// ReconcileAt is the time of day, UTC by the database's clock, at which one
	// instance audits all SKUs and logs what differs, such as 03:00; or off.
	ReconcileAt string

	StartTimeout time.Duration // to wait for database and Redis
	DrainDelay   time.Duration // from failing readiness until the listener closes
	DrainTimeout time.Duration // for orders in flight, after that

	// Log gets what happens, each line with the request that it belongs to; nil
	// discards it.
	Log *slog.Logger
}

// defaultMaxInFlight lets a lane be full (order.DefaultMaxLane), and others be
// served beside it. One that waits takes less than 64 KB, connection included: 47 KB,
// measured with 10,000 of them.
const defaultMaxInFlight = 12_000

// Default returns the settings of a shop on this machine, without a database
// and a Redis: set SQLite or MySQL, and Redis.
func Default() Settings {
	return Settings{
		Listen:       "127.0.0.1:8080",
		MaxInFlight:  defaultMaxInFlight,
		LockTTL:      10 * time.Second,
		LockWait:     15 * time.Second,
		SoldOutFor:   time.Second,
		Hold:         order.DefaultHold,
		SweepEvery:   time.Second,
		KeepKeys:     24 * time.Hour,
		ReconcileAt:  "03:00",
		StartTimeout: 30 * time.Second,
		DrainTimeout: 20 * time.Second,
	}
}

func (s Settings) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(logs.NewHandler(s.Log.Handler()))
}

package app

import (
	"log/slog"
	"time"
)

// Settings say how a shop runs. Start from Default and change what differs.
type Settings struct {
	// Listen is the address to serve on, host:port. Port 0 takes a free one;
	// Shop.Addr tells which.
	Listen string

	// MySQL is the DSN of a MySQL or MariaDB server, as go-sql-driver reads it:
	// user:password@tcp(host:3306)/database. Its schema must have been migrated.
	MySQL string

	// SQLite is the path of a database file, used if MySQL is empty. It is
	// created and migrated as needed.
	SQLite string

	// Redis is host:port or a redis:// or rediss:// URL.
	Redis string

	// Lab is the teaching mode: requests choose their strategy and think time.
	Lab bool

	// Think is the teaching mode's pause between reading stock and writing it,
	// for requests that name none.
	Think time.Duration

	LockTTL  time.Duration // how long a crashed holder keeps its lease
	LockWait time.Duration // how long an order waits for the lease; longer than LockTTL by a second at least

	StartTimeout time.Duration // to wait for database and Redis
	DrainDelay   time.Duration // from failing readiness until the listener closes
	DrainTimeout time.Duration // for orders in flight, after that

	// Log gets what happens; nil discards it.
	Log *slog.Logger
}

// Default returns the settings of a shop on this machine, without a database
// and a Redis: set SQLite or MySQL, and Redis.
func Default() Settings {
	return Settings{
		Listen:       "127.0.0.1:8080",
		LockTTL:      10 * time.Second,
		LockWait:     15 * time.Second,
		StartTimeout: 30 * time.Second,
		DrainTimeout: 20 * time.Second,
	}
}

func (s Settings) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log
}

package app

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/alicebob/miniredis/v2"
)

// databaseFile is the SQLite file's name in the directory of an Embedded.
const databaseFile = "shop.db"

// Embedded is the default that needs no server: a Redis-protocol server inside
// this process and the path of a SQLite file. Several shops may share one.
type Embedded struct {
	redis   *miniredis.Miniredis
	redlock []*miniredis.Miniredis
	dir     string
}

// StartEmbedded starts one on a free port of the loopback interface, with its
// database file in dir, which must exist and is left in place by Close.
func StartEmbedded(dir string) (*Embedded, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("data directory: %s is a file", dir)
	}
	server, err := startRedis()
	if err != nil {
		return nil, err
	}
	return &Embedded{redis: server, dir: dir}, nil
}

func startRedis() (*miniredis.Miniredis, error) {
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start the Redis-protocol server: %w", err)
	}
	// Without it, leases of a crashed holder would never end.
	server.ClockTTL(true)
	return server, nil
}

// redlockNodes is how many servers Redlock is usually described with.
const redlockNodes = 5

// StartRedlock starts five more servers, which know nothing of each other, and
// returns their addresses, for Settings.Redlock. Close stops them.
func (e *Embedded) StartRedlock() (addresses []string, err error) {
	for range redlockNodes {
		server, err := startRedis()
		if err != nil {
			return nil, err
		}
		e.redlock = append(e.redlock, server)
		addresses = append(addresses, server.Addr())
	}
	return addresses, nil
}

// Redis returns host:port, for Settings.Redis.
func (e *Embedded) Redis() string { return e.redis.Addr() }

// SQLite returns the path of the database file, for Settings.SQLite.
func (e *Embedded) SQLite() string { return DatabaseFile(e.dir) }

// DatabaseFile returns the path of the database file that a shop keeps in dir.
func DatabaseFile(dir string) string { return filepath.Join(dir, databaseFile) }

// Close stops the servers. Shut down the shops first.
func (e *Embedded) Close() error {
	e.redis.Close()
	for _, server := range e.redlock {
		server.Close()
	}
	return nil
}

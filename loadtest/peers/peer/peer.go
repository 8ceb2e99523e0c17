package peer

import (
	"context"
	"time"
)

// The same for all peers.
const (
	TTL   = 10 * time.Second // of a lease
	Retry = time.Millisecond // between the attempts of those that poll
)

// Ours is the name of internal/lock among the peers, and Raw that of the bare
// commands, which are no library.
const (
	Ours = "ours"
	Raw  = "raw"
)

// Peer is one way to lock.
type Peer struct {
	Name   string
	Module string // whose version counts; empty: this module's
	About  string // how it is set up here
	Open   Opener
}

// Opener returns a Client of the Redis at addr whose connections bear the name.
type Opener func(ctx context.Context, addr, name string) (Client, error)

// Client is what one process has of a peer: its own connections and its own
// locker. It may be used by many goroutines at once.
type Client interface {
	// Acquire waits for the key until ctx ends.
	Acquire(ctx context.Context, key string) (release func() error, err error)

	Close() error
}

// Waker is a Client that tells when its latest waiter learned of the release. Of
// the others it is only seen when they have the key.
type Waker interface {
	Woken() time.Time
}

// All returns the peers in the order in which tables show them.
func All() []Peer {
	return []Peer{
		{Raw, goRedisModule, "SET NX PX, asked again every 1 ms; EVALSHA compares and deletes", openRaw},
		{"redsync", "github.com/go-redsync/redsync/v4", "one pool, 1 ms between tries, tries without end", openRedsync},
		{"redislock", "github.com/bsm/redislock", "LinearBackoff(1 ms)", openRedislock},
		{"rueidislock", "github.com/redis/rueidis", "KeyMajority 1, NoLoopTracking, TryNextAfter 1 s: for one Redis of 7.0.5 or later", openRueidislock},
		{Ours, "", "internal/lock over go-redis, Options left as they are", openOurs},
	}
}

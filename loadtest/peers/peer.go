package main

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"example.com/shop/internal/lock" //nolint:depguard // it is what is compared
)

// The same for all peers.
const (
	ttl   = 10 * time.Second // of a lease
	retry = time.Millisecond // between the attempts of those that poll; their defaults are slower
)

// peer is a way to lock, configured as its documentation recommends for one Redis.
type peer struct {
	name   string
	module string // whose version counts; empty: this module's
	open   func(addr string) (client, error)
}

// client is what one process has of a peer: its own connections and its own locker. It is used by many goroutines at
// once.
type client interface {
	// acquire waits for the key until ctx ends, which has a deadline.
	acquire(ctx context.Context, key string) (release func() error, err error)
	close() error
}

// The peers that tables compare others with. Raw is no library.
const (
	ours = "ours"
	raw  = "raw"
)

func allPeers() []peer {
	return []peer{
		{raw, "github.com/redis/go-redis/v9", openRaw},
		{"redsync", "github.com/go-redsync/redsync/v4", openRedsync},
		{"redislock", "github.com/bsm/redislock", openRedislock},
		{"rueidislock", "github.com/redis/rueidis", openRueidislock},
		{ours, "", openOurs},
	}
}

// connect returns the client of all peers over go-redis: with a connection for every goroutine, so that none waits for
// the pool, and bound by contexts.
func connect(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: 128, ContextTimeoutEnabled: true})
}

var errNotHeld = errors.New("release: another one held the key")

// rawClient is the recipe of Redis' documentation without a library: the least that a lock over Redis can do.
type rawClient struct {
	redis *redis.Client
	del   *redis.Script
}

func openRaw(addr string) (client, error) {
	const del = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
	return &rawClient{connect(addr), redis.NewScript(del)}, nil
}

func (c *rawClient) acquire(ctx context.Context, key string) (func() error, error) {
	owner := rand.Text()
	for {
		ok, err := c.redis.SetNX(ctx, key, owner, ttl).Result()
		switch {
		case err != nil:
			return nil, err
		case ok:
			return func() error { return c.release(key, owner) }, nil //nolint:contextcheck // a release does not end with the wait
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *rawClient) release(key, owner string) error {
	deleted, err := c.del.Run(context.Background(), c.redis, []string{key}, owner).Int()
	if err == nil && deleted == 0 {
		return errNotHeld
	}
	return err
}

func (c *rawClient) close() error { return c.redis.Close() }

type redsyncClient struct {
	redis *redis.Client
	sync  *redsync.Redsync
}

func openRedsync(addr string) (client, error) {
	c := connect(addr)
	return &redsyncClient{c, redsync.New(goredis.NewPool(c))}, nil
}

func (c *redsyncClient) acquire(ctx context.Context, key string) (func() error, error) {
	mutex := c.sync.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithRetryDelay(retry), redsync.WithTries(math.MaxInt))
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	return func() error { //nolint:contextcheck // a release does not end with the wait
		ok, err := mutex.UnlockContext(context.Background())
		if err == nil && !ok {
			return errNotHeld
		}
		return err
	}, nil
}

func (c *redsyncClient) close() error { return c.redis.Close() }

type redislockClient struct {
	redis *redis.Client
	locks *redislock.Client
}

func openRedislock(addr string) (client, error) {
	c := connect(addr)
	return &redislockClient{c, redislock.New(c)}, nil
}

// acquire gives up after the TTL where ctx has no deadline.
func (c *redislockClient) acquire(ctx context.Context, key string) (func() error, error) {
	held, err := c.locks.Obtain(ctx, key, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(retry)})
	if err != nil {
		return nil, err
	}
	return func() error { return held.Release(context.Background()) }, nil //nolint:contextcheck // a release does not end with the wait
}

func (c *redislockClient) close() error { return c.redis.Close() }

type rueidislockClient struct{ locker rueidislock.Locker }

func openRueidislock(addr string) (client, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}},
		KeyValidity:    ttl,
		KeyMajority:    1,
		NoLoopTracking: true,
		// Until it gives up on a request and tries the next Redis. There is none, and on a busy machine the default of
		// 20 ms passes: it then hangs although the key is free.
		TryNextAfter: time.Second,
	})
	return rueidislockClient{locker}, err
}

func (c rueidislockClient) acquire(ctx context.Context, key string) (func() error, error) {
	_, cancel, err := c.locker.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return func() error { cancel(); return nil }, nil
}

func (c rueidislockClient) close() error { c.locker.Close(); return nil }

type ourClient struct {
	redis  *redis.Client
	locker *lock.Locker
}

func openOurs(addr string) (client, error) {
	c := connect(addr)
	return &ourClient{c, lock.New(lock.NewRedis(c), lock.Options{TTL: ttl})}, nil
}

func (c *ourClient) acquire(ctx context.Context, key string) (func() error, error) {
	lease, err := c.locker.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return lease.Release, nil
}

func (c *ourClient) close() error { return errors.Join(c.locker.Close(), c.redis.Close()) }

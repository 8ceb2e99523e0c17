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

// Settings of all peers.
const (
	ttl   = 10 * time.Second // of a lease
	retry = time.Millisecond // between the attempts of polling peers, whose defaults are slower
)

// peer is a way to lock, configured as its documentation recommends for one Redis.
type peer struct {
	name string
	open func(addr string) (client, error)
}

// client is a peer's client in one process, with connections and a locker of its own. Many goroutines use it at once.
type client struct {
	// acquire waits for the key until ctx ends. The ctx has a deadline.
	acquire func(ctx context.Context, key string) (release func() error, err error)
	// all takes several keys. It is nil if the peer has no such call and takes the keys one after the other.
	all   func(ctx context.Context, keys []string) (release func() error, err error)
	close func() error
}

// acquireAll takes the keys, all or none.
func (c client) acquireAll(ctx context.Context, keys []string) (func() error, error) {
	switch {
	case len(keys) == 1:
		return c.acquire(ctx, keys[0])
	case c.all != nil:
		return c.all(ctx, keys)
	}
	var taken []func() error
	release := func() error {
		var all error
		for _, r := range taken {
			all = errors.Join(all, r())
		}
		return all
	}
	for _, key := range keys {
		r, err := c.acquire(ctx, key)
		if err != nil {
			return nil, errors.Join(err, release())
		}
		taken = append(taken, r)
	}
	return release, nil
}

// The peers with which the tables compare the others. Raw is not a library.
const (
	ours = "ours"
	raw  = "raw"
)

func allPeers() []peer {
	return []peer{
		{raw, openRaw},
		{"redsync", openRedsync},
		{"redislock", openRedislock},
		{"rueidislock", openRueidislock},
		{ours, openOurs},
	}
}

// connect returns the client for all peers over go-redis. It heeds contexts, and has a connection for every goroutine.
func connect(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: 128, ContextTimeoutEnabled: true})
}

var errNotHeld = errors.New("release: another holder had the key")

// openRaw is the recipe of Redis' documentation without a library: the least that a lock over Redis can do.
func openRaw(addr string) (client, error) {
	c := connect(addr)
	const script = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
	del := redis.NewScript(script)
	release := func(key, owner string) error {
		deleted, err := del.Run(context.Background(), c, []string{key}, owner).Int()
		if err == nil && deleted == 0 {
			return errNotHeld
		}
		return err
	}
	acquire := func(ctx context.Context, key string) (func() error, error) {
		owner := rand.Text()
		for {
			ok, err := c.SetNX(ctx, key, owner, ttl).Result()
			switch {
			case err != nil:
				return nil, err
			case ok:
				return func() error { return release(key, owner) }, nil
			}
			select {
			case <-time.After(retry):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	return client{acquire: acquire, close: c.Close}, nil
}

func openRedsync(addr string) (client, error) {
	c := connect(addr)
	sync := redsync.New(goredis.NewPool(c))
	acquire := func(ctx context.Context, key string) (func() error, error) {
		mutex := sync.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithRetryDelay(retry), redsync.WithTries(math.MaxInt))
		if err := mutex.LockContext(ctx); err != nil {
			return nil, err
		}
		return func() error { //nolint:contextcheck // it outlives the wait
			ok, err := mutex.UnlockContext(context.Background())
			if err == nil && !ok {
				return errNotHeld
			}
			return err
		}, nil
	}
	return client{acquire: acquire, close: c.Close}, nil
}

func openRedislock(addr string) (client, error) {
	c := connect(addr)
	locks := redislock.New(c)
	acquire := func(ctx context.Context, key string) (func() error, error) {
		held, err := locks.Obtain(ctx, key, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(retry)})
		if err != nil {
			return nil, err
		}
		return func() error { return held.Release(context.Background()) }, nil //nolint:contextcheck // it outlives the wait
	}
	return client{acquire: acquire, close: c.Close}, nil
}

func openRueidislock(addr string) (client, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}},
		KeyValidity:    ttl,
		KeyMajority:    1,
		NoLoopTracking: true,
		// After this time it gives up a request and tries the next Redis, but there is only one. By the default of 20
		// ms, it hangs on a busy machine although the key is free.
		TryNextAfter: ttl,
	})
	acquire := func(ctx context.Context, key string) (func() error, error) {
		_, cancel, err := locker.WithContext(ctx, key)
		return func() error { cancel(); return nil }, err
	}
	return client{acquire: acquire, close: func() error { locker.Close(); return nil }}, err
}

func openOurs(addr string) (client, error) {
	c := connect(addr)
	locker := lock.New(lock.NewRedis(c), lock.Options{TTL: ttl})
	acquire := func(ctx context.Context, key string) (func() error, error) {
		lease, err := locker.Acquire(ctx, key)
		if err != nil {
			return nil, err
		}
		return lease.Release, nil
	}
	all := func(ctx context.Context, keys []string) (func() error, error) {
		leases, err := locker.AcquireAll(ctx, keys...)
		if err != nil {
			return nil, err
		}
		return leases.Release, nil
	}
	return client{acquire, all, func() error { return errors.Join(locker.Close(), c.Close()) }}, nil
}

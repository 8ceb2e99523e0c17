package peer

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// raw is the recipe of Redis' documentation without a library: the least that a
// lock over Redis can do.
type raw struct {
	client *redis.Client
	del    *redis.Script
}

func openRaw(_ context.Context, addr, name string) (Client, error) {
	return &raw{
		client: connect(addr, name),
		del:    redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`),
	}, nil
}

func (r *raw) Acquire(ctx context.Context, key string) (func() error, error) {
	owner := rand.Text()
	for {
		ok, err := r.client.SetNX(ctx, key, owner, TTL).Result()
		switch {
		case err != nil:
			return nil, err
		case ok:
			return func() error { return r.release(key, owner) }, nil //nolint:contextcheck // a release does not end with the wait
		}
		select {
		case <-time.After(Retry):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *raw) release(key, owner string) error {
	deleted, err := r.del.Run(context.Background(), r.client, []string{key}, owner).Int()
	if err == nil && deleted == 0 {
		return errors.New("the key was somebody else's")
	}
	return err
}

func (r *raw) Close() error { return r.client.Close() }

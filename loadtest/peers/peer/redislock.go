package peer

import (
	"context"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

type redislockClient struct {
	client *redis.Client
	locks  *redislock.Client
}

func openRedislock(_ context.Context, addr, name string) (Client, error) {
	client := connect(addr, name)
	return &redislockClient{client, redislock.New(client)}, nil
}

// Acquire needs a ctx with a deadline, without which this library gives up after
// the TTL.
func (r *redislockClient) Acquire(ctx context.Context, key string) (func() error, error) {
	held, err := r.locks.Obtain(ctx, key, TTL, &redislock.Options{RetryStrategy: redislock.LinearBackoff(Retry)})
	if err != nil {
		return nil, err
	}
	return func() error { return held.Release(context.Background()) }, nil //nolint:contextcheck // a release does not end with the wait
}

func (r *redislockClient) Close() error { return r.client.Close() }

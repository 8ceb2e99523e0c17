package peer

import (
	"context"
	"errors"
	"math"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

type redsyncClient struct {
	client *redis.Client
	sync   *redsync.Redsync
}

func openRedsync(_ context.Context, addr, name string) (Client, error) {
	client := connect(addr, name)
	return &redsyncClient{client, redsync.New(goredis.NewPool(client))}, nil
}

func (r *redsyncClient) Acquire(ctx context.Context, key string) (func() error, error) {
	mutex := r.sync.NewMutex(key,
		redsync.WithExpiry(TTL), redsync.WithRetryDelay(Retry), redsync.WithTries(math.MaxInt))
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	return func() error { //nolint:contextcheck // a release does not end with the wait
		ok, err := mutex.UnlockContext(context.Background())
		if err == nil && !ok {
			return errors.New("the key was somebody else's")
		}
		return err
	}, nil
}

func (r *redsyncClient) Close() error { return r.client.Close() }

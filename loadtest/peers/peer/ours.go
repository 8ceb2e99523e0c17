package peer

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock" //nolint:depguard // it is what is compared
)

type ours struct {
	client *redis.Client
	locker *lock.Locker
}

func openOurs(_ context.Context, addr, name string) (Client, error) {
	client := connect(addr, name)
	return &ours{client, lock.New(lock.NewRedis(client), lock.Options{TTL: TTL})}, nil
}

func (o *ours) Acquire(ctx context.Context, key string) (func() error, error) {
	lease, err := o.locker.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return lease.Release, nil
}

func (o *ours) Close() error { return errors.Join(o.locker.Close(), o.client.Close()) }

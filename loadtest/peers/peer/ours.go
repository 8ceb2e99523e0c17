package peer

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock" //nolint:depguard // it is what is compared
)

type ours struct {
	client *redis.Client
	locker *lock.Locker
	waits  *waits
}

func openOurs(_ context.Context, addr, name string) (Client, error) {
	client := connect(addr, name)
	w := &waits{Backend: lock.NewRedis(client)}
	return &ours{client, lock.New(w, lock.Options{TTL: TTL}), w}, nil
}

func (o *ours) Acquire(ctx context.Context, key string) (func() error, error) {
	lease, err := o.locker.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return lease.Release, nil
}

// Woken implements Waker.
func (o *ours) Woken() time.Time { return time.Unix(0, o.waits.ended.Load()) }

// waits is a Backend that notes when its latest Wait ended.
type waits struct {
	lock.Backend
	ended atomic.Int64
}

func (w *waits) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	err := w.Backend.Wait(ctx, c, g)
	w.ended.Store(time.Now().UnixNano())
	return err
}

func (o *ours) Close() error { return errors.Join(o.locker.Close(), o.client.Close()) }

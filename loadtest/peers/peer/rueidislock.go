package peer

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

type rueidislockClient struct{ locker rueidislock.Locker }

func openRueidislock(_ context.Context, addr, name string) (Client, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}, ClientName: name},
		KeyValidity:    TTL,
		KeyMajority:    1,
		NoLoopTracking: true,
		// Until it gives up on a request and tries the next Redis. There is none, and on
		// a busy machine the default of 20 ms passes: it then hangs although the key is free.
		TryNextAfter: time.Second,
	})
	if err != nil {
		return nil, err
	}
	return rueidislockClient{locker}, nil
}

func (r rueidislockClient) Acquire(ctx context.Context, key string) (func() error, error) {
	_, cancel, err := r.locker.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return func() error { cancel(); return nil }, nil
}

func (r rueidislockClient) Close() error { r.locker.Close(); return nil }

package wronglock

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
)

// shortTTL is shorter than an order takes, whose transaction alone is about as
// long.
const shortTTL = 2 * time.Millisecond

// freeing is how long giving a lock back may take: longer than a lesson stops it.
const freeing = time.Minute

// Options of the locks.
type Options struct {
	TTL      time.Duration // of those whose mistake is not that it is short
	ShortTTL time.Duration // of the others; 0 means 2 ms
	MaxWait  time.Duration // how long Lock waits
}

// Lock is one of the wrong locks. It may be used by many goroutines at once.
type Lock struct {
	client  redis.UniversalClient
	prefix  string
	maxWait time.Duration
	mistake
}

// mistake is how a lock is taken and given back. Both are told the owner, a
// random text of one holder.
type mistake struct {
	ttl  time.Duration
	take func(ctx context.Context, client redis.UniversalClient, key, owner string, ttl time.Duration) (taken bool, err error)
	free func(ctx context.Context, client redis.UniversalClient, key, owner string) error
}

// All returns one of each, by name, over a client that stays the caller's.
func All(client redis.UniversalClient, o Options) map[string]*Lock {
	locks, short := map[string]*Lock{}, cmp.Or(o.ShortTTL, shortTTL)
	for name, m := range map[string]mistake{
		"setnx-expire": {o.TTL, takeInTwoSteps, compareAndDelete},
		"setex":        {o.TTL, overwrite, compareAndDelete},
		"blind-del":    {short, setIfAbsent, deleteBlindly},
		"get-then-del": {o.TTL, setIfAbsent, getThenDelete},
		"short-lease":  {short, setIfAbsent, compareAndDelete},
	} {
		locks[name] = &Lock{client: client, prefix: "wrong:" + name + ":", maxWait: o.MaxWait, mistake: m}
	}
	return locks
}

// Lock waits for the key, for as long as ctx and Options.MaxWait allow. The error
// is a lock.ErrNotAcquired, joined with the reason.
func (l *Lock) Lock(ctx context.Context, key string) (unlock func(), err error) {
	owner := rand.Text()
	err = l.poll(ctx, func(ctx context.Context) (bool, error) {
		return l.take(ctx, l.client, l.prefix+key, owner, l.ttl)
	})
	if err != nil {
		return nil, fmt.Errorf("lock %q: %w: %w", key, lock.ErrNotAcquired, err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freeing)
		defer cancel()
		_ = l.free(ctx, l.client, l.prefix+key, owner) // its TTL ends it then
	}, nil
}

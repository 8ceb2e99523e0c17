package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
)

// Redsync returns a lock.Backend over github.com/go-redsync/redsync, with a client for each of several independent
// Redis servers. A Locker's renewals run over redsync's Extend. Redlock has no fence: Lease.Fence is 0. Waiters poll.
// The caller closes the clients after the Locker.
//
// redsync waits for the answers of all nodes, also of those that are down: for a twentieth of the TTL when it takes a
// lock, and until ctx ends when it extends or releases the lock. An owner that asks for its own lease again, as a
// Locker never does, loses the lease.
func Redsync(nodes ...redis.UniversalClient) lock.Backend {
	pools := order.Map(nodes, goredis.NewPool)
	return redlock{nodes: nodes, sync: redsync.New(pools...)}
}

type redlock struct {
	nodes []redis.UniversalClient
	sync  *redsync.Redsync
}

const redlockPrefix = "redlock:" // of all keys

func (r redlock) mutex(c lock.Claim) *redsync.Mutex {
	owner := func() (string, error) { return c.Owner, nil }
	return r.sync.NewMutex(redlockPrefix+c.Key, redsync.WithValue(c.Owner), redsync.WithGenValueFunc(owner), redsync.WithExpiry(c.TTL))
}

func (r redlock) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	err := r.mutex(c).TryLockContext(ctx)
	_, taken := errors.AsType[*redsync.ErrTaken](err)
	_, split := errors.AsType[*redsync.ErrNodeTaken](err) // too few nodes have answered for a majority of either owner
	if taken || split || errors.Is(err, redsync.ErrFailed) {
		return lock.Grant{Held: true, Retry: 5*time.Millisecond + rand.N(20*time.Millisecond)}, nil
	}
	return lock.Grant{}, err
}

func (r redlock) Wait(ctx context.Context, _ lock.Claim, g lock.Grant) error {
	return order.Pause(ctx, g.Retry)
}

func (r redlock) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	_, err := r.mutex(c).ExtendContext(ctx)
	return 0, lost(err)
}

func (r redlock) Release(ctx context.Context, c lock.Claim) error {
	_, err := r.mutex(c).UnlockContext(ctx)
	return lost(err)
}

// lost returns lock.ErrLost if a majority of nodes refuses the owner, or a node has no key to release.
func lost(err error) error {
	if _, taken := errors.AsType[*redsync.ErrTaken](err); taken || errors.Is(err, redsync.ErrLockAlreadyExpired) {
		return fmt.Errorf("%w: %w", lock.ErrLost, err)
	}
	return err
}

// Holder returns the owner that has the key on a majority of nodes. Without a majority, a node that fails is an error.
func (r redlock) Holder(ctx context.Context, key string) (lock.Holder, error) {
	votes, failures := map[string]int{}, []error{}
	for _, node := range r.nodes {
		owner, err := node.Get(ctx, redlockPrefix+key).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			failures = append(failures, err)
			continue
		}
		if votes[owner]++; owner != "" && votes[owner] > len(r.nodes)/2 {
			left, err := node.PTTL(ctx, redlockPrefix+key).Result()
			return lock.Holder{Owner: owner, Remaining: left}, err
		}
	}
	return lock.Holder{}, errors.Join(failures...)
}

func (r redlock) Evict(ctx context.Context, key, owner string) error {
	return r.Release(ctx, lock.Claim{Key: key, Owner: owner})
}

func (r redlock) Close() error { return nil }

// redsyncRelease and redsyncRenew are the scripts of redsync, word for word: recordings show them by their names.
const redsyncRelease = `
	local val = redis.call("GET", KEYS[1])
	if val == ARGV[1] then
		return redis.call("DEL", KEYS[1])
	elseif val == false then
		return -1
	else
		return 0
	end
`

const redsyncRenew = `
	if redis.call("GET", KEYS[1]) == ARGV[1] then
		return redis.call("PEXPIRE", KEYS[1], ARGV[2])
	else
		return 0
	end
`

func redsyncScripts() []lock.Script {
	return []lock.Script{
		{Script: redis.NewScript(redsyncRelease), Name: "release", Source: redsyncRelease},
		{Script: redis.NewScript(redsyncRenew), Name: "renew", Source: redsyncRenew},
	}
}

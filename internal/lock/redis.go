package lock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed redis_acquire.lua
	acquireSource string
	//go:embed redis_renew.lua
	renewSource string
	//go:embed redis_release.lua
	releaseSource string

	acquireScript = redis.NewScript(acquireSource)
	renewScript   = redis.NewScript(renewSource)
	releaseScript = redis.NewScript(releaseSource)
)

// fenceMemory is how long the last fence of a key is kept after its lease,
// against steps of the server's clock.
const fenceMemory = time.Minute

// Redis is a Backend that keeps leases in Redis 6.2 or later, or Valkey: a
// single server, Sentinel or Cluster. See the package comment for its promises.
//
// A key is a hash {owner, until, fence, released} with a TTL. Owners that wait stand in a sorted
// set beside it, in the same slot; a release passes the key to the first of them
// and publishes to that process's channel.
//
// With access lists, the user needs the keys and channels that start with the
// prefix, such as ~lock:* and &lock:*. Without the right to subscribe, who waits
// is not told of a release, and asks again when the holder's time is over.
type Redis struct {
	client redis.UniversalClient
	prefix string
	wake   *wakeups
	counts bool // PUBLISH tells how many listen: there is only one server
}

// RedisOption changes a Redis backend.
type RedisOption func(*Redis)

// WithPrefix sets what all keys and channels start with; the default is "lock:".
// Lockers that are to exclude each other use the same. It panics on a prefix
// with braces, which would break the grouping of keys in a cluster.
func WithPrefix(prefix string) RedisOption {
	for _, c := range prefix {
		if c == '{' || c == '}' {
			panic(fmt.Sprintf("lock: prefix %q has a brace", prefix))
		}
	}
	return func(r *Redis) { r.prefix = prefix }
}

// NewRedis returns a Backend over the client, for one Locker. The client stays
// the caller's, to be closed after the Locker. Its ContextTimeoutEnabled should
// be set, so that a request that nobody waits for any more ends.
//
// A cluster needs a ClusterClient with its MaxRedirects, 3 by default, and
// Sentinel a FailoverClient without ReplicaOnly. Options that route reads to
// replicas do no harm: the lock only asks masters.
func NewRedis(client redis.UniversalClient, options ...RedisOption) *Redis {
	_, single := client.(*redis.Client)
	r := &Redis{client: client, prefix: "lock:", counts: single}
	for _, o := range options {
		o(r)
	}
	r.wake = newWakeups(client, r.prefix+"wake:")
	return r
}

// Acquire implements Backend.
func (r *Redis) Acquire(ctx context.Context, c Claim) (Grant, error) {
	owner := r.wake.name(c.Owner)
	queue := c.Queue && r.wake.ready()
	if queue {
		r.wake.expect(owner)
	}
	grant, err := r.acquire(ctx, c, owner, queue)
	if err == nil && grant.Held && c.Queue && !queue {
		// Listen before standing in line, or the call could be missed.
		if err := r.wake.listen(ctx); err != nil {
			if ctx.Err() != nil || errors.Is(err, ErrClosed) {
				return Grant{}, err
			}
			return grant, nil // without a place in line
		}
		r.wake.expect(owner)
		grant, err = r.acquire(ctx, c, owner, true)
	}
	if err == nil && !grant.Held {
		r.wake.forget(owner)
	}
	return grant, err
}

func (r *Redis) acquire(ctx context.Context, c Claim, owner string, queue bool) (Grant, error) {
	inLine := 0
	if queue {
		inLine = 1
	}
	reply, err := acquireScript.Run(ctx, r.client, r.keys(c), owner,
		c.TTL.Milliseconds(), fenceMemory.Milliseconds(), inLine).Int64Slice()
	switch {
	case err != nil:
		return Grant{}, r.failed("acquire", err)
	case len(reply) != 2:
		return Grant{}, fmt.Errorf("redis: acquire: unexpected answer %v", reply)
	case reply[0] == 1:
		return Grant{Fence: reply[1]}, nil
	}
	return Grant{Held: true, Retry: max(0, time.Duration(reply[1])*time.Millisecond)}, nil
}

// Wait implements Backend.
func (r *Redis) Wait(ctx context.Context, c Claim, g Grant) error {
	// The safety net: by then the holder has released, renewed or lost the key.
	// The jitter keeps processes apart, and is small beside any TTL.
	jitter := rand.N(min(g.Retry/10, 250*time.Millisecond) + 5*time.Millisecond)
	net := time.NewTimer(g.Retry + jitter)
	defer net.Stop()
	select {
	case <-r.wake.expect(r.wake.name(c.Owner)):
	case <-net.C:
		r.seekMasters() // the call may be lost because the subscription's server is
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Renew implements Backend.
func (r *Redis) Renew(ctx context.Context, c Claim) (int64, error) {
	fence, err := renewScript.Run(ctx, r.client, r.keys(c)[:1],
		r.wake.name(c.Owner), c.TTL.Milliseconds(), fenceMemory.Milliseconds(), c.Fence).Int64()
	if err != nil {
		return 0, r.failed("renew", err)
	}
	if fence == 0 {
		return 0, ErrLost
	}
	return fence, nil
}

// Release implements Backend.
func (r *Redis) Release(ctx context.Context, c Claim) error {
	owner := r.wake.name(c.Owner)
	r.wake.forget(owner)
	counts := 0
	if r.counts {
		counts = 1
	}
	held, err := releaseScript.Run(ctx, r.client, r.keys(c), owner, c.Fence,
		reservation.Milliseconds(), fenceMemory.Milliseconds(), r.wake.prefix, counts).Bool()
	if err != nil && !errors.Is(err, redis.Nil) {
		return r.failed("release", err)
	}
	if !held {
		return ErrLost
	}
	return nil
}

// failed is the error of a request.
func (r *Redis) failed(request string, err error) error {
	var answer redis.Error
	if !errors.As(err, &answer) && !errors.Is(err, context.Canceled) {
		r.seekMasters()
	}
	return fmt.Errorf("redis: %s: %w", request, err)
}

// seekMasters makes the client of a cluster ask, in the background, which
// servers are its masters. By itself it does so when one refuses a request, but
// not when one is gone: then it goes on asking that one for up to a minute.
func (r *Redis) seekMasters() {
	if c, ok := r.client.(interface{ ReloadState(ctx context.Context) }); ok {
		c.ReloadState(context.Background())
	}
}

// Close ends the subscription. The client stays open.
func (r *Redis) Close() error { return r.wake.close() }

// keys returns the names of the lease and of its line, in one slot.
func (r *Redis) keys(c Claim) []string {
	lease := r.prefix + "{" + c.Key + "}"
	return []string{lease, lease + ":line"}
}

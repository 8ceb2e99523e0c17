package lock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
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

	acquireScript = newScript(acquireSource)
	renewScript   = newScript(renewSource)
	releaseScript = newScript(releaseSource)
)

// newScript gives a script the durations that do not change, in milliseconds.
func newScript(source string) *redis.Script {
	return redis.NewScript(fmt.Sprintf("local memory, reservation = %d, %d\n\n%s",
		fenceMemory.Milliseconds(), reservation.Milliseconds(), source))
}

// fenceMemory is how long the last fence of a key is kept after its lease. When the
// server's clock steps back by more, the fences of a key that is idle for longer
// than this fall, however far the last one is ahead of the clock.
const fenceMemory = time.Minute

// Redis is a Backend that keeps leases in Redis 6.2 or later, or Valkey: a
// single server, Sentinel or Cluster. See the package comment for its promises.
//
// A key is a string with a TTL: owner, fence, and whether others wait. They stand
// in a sorted set beside it, in the same slot; a release passes the key to the
// first of them and publishes to that process's channel.
//
// With access lists, the user needs the keys and channels that start with the
// prefix, such as ~lock:* and &lock:*. Without the right to subscribe, who waits
// is not told of a release, and asks again when the holder's time is over.
type Redis struct {
	client  redis.UniversalClient
	prefix  string
	wake    *wakeups
	send    batches
	cluster bool // PUBLISH does not tell how many listen: there may be several servers
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
	r := &Redis{client: client, prefix: "lock:", cluster: !single}
	for _, o := range options {
		o(r)
	}
	r.wake = newWakeups(client, r.prefix+"wake:")
	r.send = batches{client: client, off: !single}
	return r
}

// Acquire implements Backend.
func (r *Redis) Acquire(ctx context.Context, c Claim) (Grant, error) {
	queue := c.Queue && r.wake.ready()
	if queue {
		r.wake.expect(c.Owner)
	}
	grant, err := r.acquire(ctx, c, queue)
	if err == nil && grant.Held && c.Queue && !queue {
		// Listen before standing in line, or the call could be missed.
		if err := r.wake.listen(ctx); err != nil && (ctx.Err() != nil || errors.Is(err, ErrClosed)) {
			return Grant{}, err
		}
		r.wake.expect(c.Owner) // where it does not listen yet, to be told when it does
		if !r.wake.ready() {
			return grant, nil // without a place in line
		}
		grant, err = r.acquire(ctx, c, true)
	}
	if err == nil && !grant.Held {
		r.wake.forget(c.Owner)
	}
	return grant, err
}

func (r *Redis) acquire(ctx context.Context, c Claim, queue bool) (Grant, error) {
	lease, line := r.keys(c)
	owner, ttl := r.wake.name(c.Owner), (c.TTL + fenceMemory).Milliseconds()
	var cmd *redis.Cmd
	if queue {
		cmd = r.send.run(ctx, acquireScript, 2, lease, line, owner, ttl)
	} else {
		cmd = r.send.run(ctx, acquireScript, 1, lease, owner, ttl)
	}
	answer, err := cmd.Int64()
	switch {
	case err != nil:
		return Grant{}, r.failed("acquire", err)
	case answer > 0:
		return Grant{Fence: answer}, nil
	}
	return Grant{Held: true, Retry: time.Duration(-answer) * time.Millisecond}, nil
}

// Wait implements Backend.
func (r *Redis) Wait(ctx context.Context, c Claim, g Grant) error {
	// The safety net: by then the holder has released, renewed or lost the key.
	// The jitter keeps processes apart, and is small beside any TTL.
	jitter := rand.N(min(g.Retry/10, 250*time.Millisecond) + 5*time.Millisecond)
	net := time.NewTimer(g.Retry + jitter)
	defer net.Stop()
	select {
	case <-r.wake.expect(c.Owner):
	case <-net.C:
		r.seekMasters() // the call may be lost because the subscription's server is
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Renew implements Backend.
func (r *Redis) Renew(ctx context.Context, c Claim) (int64, error) {
	lease, _ := r.keys(c)
	fence, err := r.send.run(ctx, renewScript, 1,
		lease, r.wake.name(c.Owner), (c.TTL + fenceMemory).Milliseconds(), c.Fence).Int64()
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
	r.wake.forget(c.Owner)
	lease, line := r.keys(c)
	fence, owner := strconv.FormatInt(c.Fence, 10), r.wake.name(c.Owner)
	args := []any{lease, line, fence + "+" + owner + " ", fence + "-" + owner}
	if r.cluster {
		args = append(args, "cluster")
	}
	held, err := r.send.run(ctx, releaseScript, 2, args...).Bool()
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
func (r *Redis) Close() error {
	err := r.wake.close()
	r.send.close()
	return err
}

// keys returns the names of the lease and of its line, in one slot.
func (r *Redis) keys(c Claim) (lease, line string) {
	line = r.prefix + "{" + c.Key + "}:line"
	return line[:len(line)-len(":line")], line
}

package lock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// fenceMemory is how long the last fence of a key is kept after its lease. When the server's clock steps back by more,
// the fences of a key that is idle for longer than this fall, however far the last one is ahead of the clock.
const fenceMemory = time.Minute

// version is what values start with: the version of their layout, which counts up when the meaning of a value changes,
// and the one constant that their expiry depends on. A version of this package takes a key of another version for held
// until the key is gone.
var version = fmt.Sprintf("1.%d:", fenceMemory.Milliseconds())

// newScript gives a script its constants.
func newScript(source string) *redis.Script {
	return redis.NewScript(fmt.Sprintf("local memory, reservation, gap, version = %d, %d, %d, '%s'\n\n%s",
		fenceMemory.Milliseconds(), reservation.Milliseconds(), fenceGap, version, source))
}

// Script is a Lua script that a lock runs in Redis.
type Script struct {
	Name   string // what it is for: acquire, renew or release
	Hash   string // how EVALSHA and a server's slow log call it
	Source string // without its constants
}

// Scripts returns the scripts of the Redis backend.
func Scripts() []Script {
	return []Script{
		{"acquire", acquireScript.Hash(), acquireSource}, {"renew", renewScript.Hash(), renewSource},
		{"release", releaseScript.Hash(), releaseSource},
	}
}

// Redis is a Backend that keeps leases in Redis 6.2 or later, or Valkey: a single server, Sentinel or Cluster. See the
// package comment for its promises.
//
// A key is a string with a TTL: fence, owner, whether others wait, and the owner that released it last. The waiters are
// in a sorted set beside it, in the same slot; a release passes the key to the first of them and publishes to that
// process's channel.
//
// The server must not evict keys: set maxmemory-policy noeviction. With any other policy a full server drops leases
// that are held, as if it had lost its memory. A full server renews and releases none, so keep memory free.
//
// With access control lists, the user needs the keys ~lock:* and the channels &lock:*. Without the right to subscribe,
// waiters are not in the queue, and ask again every tenth of the TTL.
type Redis struct {
	client  redis.UniversalClient
	wake    *wakeups
	send    pipeline
	cluster bool // several servers: the answer of PUBLISH does not count all subscribers
}

// redisPrefix is what all keys and channels start with.
const redisPrefix = "lock:"

// NewRedis returns a Backend over the client, for one Locker. The client stays the caller's, to be closed after the
// Locker.
//
// It panics on a client whose options have no ContextTimeoutEnabled, or a ReadTimeout or WriteTimeout of -2: its
// requests would outlast the time that a lease has for them. (-1 is allowed.) A cluster needs a ClusterClient with its
// MaxRedirects, 3 by default, and Sentinel a FailoverClient without ReplicaOnly. Options that route reads to replicas do
// no harm: the lock only asks masters. A Ring, which spreads keys over independent servers, is refused by a panic as
// well. Any other type counts as a cluster.
func NewRedis(client redis.UniversalClient) *Redis {
	heedsContext, single := true, false
	switch c := client.(type) {
	case *redis.Client: // which keeps -2 as -1
		o := c.Options()
		heedsContext, single = o.ContextTimeoutEnabled && min(o.ReadTimeout, o.WriteTimeout) >= 0, true
	case *redis.ClusterClient:
		o := c.Options()
		heedsContext = o.ContextTimeoutEnabled && min(o.ReadTimeout, o.WriteTimeout) >= 0
	case *redis.Ring:
		panic("lock: NewRedis: a redis.Ring cannot keep leases: want a Client, FailoverClient or ClusterClient")
	}
	if !heedsContext {
		panic("lock: NewRedis: in the client's options, set ContextTimeoutEnabled, and no ReadTimeout or WriteTimeout of -2")
	}
	r := &Redis{client: client, cluster: !single}
	r.wake = newWakeups(client, r.reloadMasters)
	r.send = pipeline{client: client, off: !single}
	return r
}

// Acquire implements Backend.
func (r *Redis) Acquire(ctx context.Context, c Claim) (Grant, error) {
	lease, line := redisKeys(c)
	keys, args := 1, []any{lease, r.wake.name(c.Owner), (c.TTL + fenceMemory).Milliseconds()}
	if c.Queue {
		r.wake.listen(ctx)
		if _, confirmed := r.wake.expect(c.Owner); confirmed { // before asking, or the wake-up could be missed
			keys, args = 2, slices.Insert(args, 1, any(line))
		}
	}
	answer, err := r.send.run(ctx, acquireScript, keys, args...).Int64()
	switch {
	case err != nil:
		return Grant{}, r.failed("acquire", err)
	case answer > 0:
		r.wake.forget(c.Owner)
		return Grant{Fence: answer}, nil
	}
	return Grant{Held: true, Retry: time.Duration(-answer) * time.Millisecond}, nil
}

// Wait implements Backend. A waiter asks again after a tenth of the TTL: a server that lost its memory, or was
// replaced, has lost the queue.
func (r *Redis) Wait(ctx context.Context, c Claim, g Grant) error {
	again := min(g.Retry, max(c.TTL/10, 100*time.Millisecond))
	// The jitter spreads the requests of processes, and is small compared with any TTL.
	again += rand.N(min(again/10, 250*time.Millisecond) + 5*time.Millisecond)
	woken, _ := r.wake.expect(c.Owner)
	select {
	case <-woken:
	case <-time.After(again):
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Renew implements Backend.
func (r *Redis) Renew(ctx context.Context, c Claim) (int64, error) {
	lease, _ := redisKeys(c)
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
	lease, line := redisKeys(c)
	fence, owner := strconv.FormatInt(c.Fence, 10), r.wake.name(c.Owner)
	args := []any{lease, line, fence, owner}
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

// heldValue matches the value of a key that is held, without its version: fence and owner.
var heldValue = regexp.MustCompile(`^(\d+)[+*](\S+) `)

// Holder implements Inspector. Since is read from the fence: after Lease.Raise, it is not a time.
func (r *Redis) Holder(ctx context.Context, key string) (Holder, error) {
	lease, _ := redisKeys(Claim{Key: key})
	both := r.client.TxPipeline()
	value, ttl := both.Get(ctx, lease), both.PTTL(ctx, lease)
	if _, err := both.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return Holder{}, r.failed("holder", err)
	}
	ours, known := strings.CutPrefix(value.Val(), version)
	match := heldValue.FindStringSubmatch(ours)
	left := ttl.Val() - fenceMemory
	switch {
	case !known && value.Val() != "":
		return Holder{}, errors.New("redis: held by another version of this package")
	case match == nil || left <= 0:
		return Holder{}, nil
	}
	fence, err := strconv.ParseInt(match[1], 10, 64)
	return Holder{Owner: match[2], Since: time.UnixMicro(fence), Remaining: left}, err
}

// Evict implements Inspector: it renews the lease, for no time.
func (r *Redis) Evict(ctx context.Context, key, owner string) error {
	lease, _ := redisKeys(Claim{Key: key})
	over := fenceMemory.Milliseconds() - 1
	fence, err := r.send.run(ctx, renewScript, 1, lease, owner, over, 0).Int64()
	switch {
	case err != nil:
		return r.failed("evict", err)
	case fence == 0:
		return ErrLost
	}
	return nil
}

// failed returns the error of a request. If the server did not answer, it makes a cluster's client look for the
// masters.
func (r *Redis) failed(request string, err error) error {
	var answer redis.Error
	if !errors.As(err, &answer) && !errors.Is(err, context.Canceled) {
		r.reloadMasters()
	}
	return fmt.Errorf("redis: %s: %w", request, err)
}

// reloadMasters makes the client of a cluster find out, in the background, which servers are masters. By itself it does
// so when a server refuses a request, but not when a server is gone: then it goes on asking that one for up to a
// minute.
func (r *Redis) reloadMasters() {
	if c, ok := r.client.(interface{ ReloadState(ctx context.Context) }); ok {
		c.ReloadState(context.Background())
	}
}

// Close ends the subscription. The client stays open.
func (r *Redis) Close() error {
	r.wake.close()
	r.send.work.Wait()
	return nil
}

// redisKeys returns the names of the lease and of its queue, in one slot.
func redisKeys(c Claim) (lease, line string) {
	lease = redisPrefix + "{" + c.Key + "}"
	return lease, lease + ":line"
}

package lock

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed redis_memory.lua
	memorySource string
	//go:embed redis_acquire.lua
	acquireSource string
	//go:embed redis_renew.lua
	renewSource string
	//go:embed redis_release.lua
	releaseSource string

	acquireScript = newScript("acquire", acquireSource)
	renewScript   = newScript("renew", renewSource)
	releaseScript = newScript("release", releaseSource)
)

// Script is a Lua script that a lock runs in Redis.
type Script struct {
	*redis.Script
	Name   string // acquire, renew or release
	Source string // without its constants
}

// Scripts returns the scripts of the Redis backend.
func Scripts() []Script { return []Script{acquireScript, renewScript, releaseScript} }

// fenceMemory is the time for which the last fence of a key is kept after its lease. If the fence is ahead of the
// server's clock, the time begins when the clock has passed the fence. If the clock steps back by more, and the key is
// idle for longer than this, its next fence is lower.
const fenceMemory = time.Minute

// newScript gives a script its constants and the code that scripts share. A value starts with its version: the number
// of its layout, which rises when the meaning of a value changes, and the time for which the fence is kept, in
// milliseconds. This package treats a key with another layout as held until the key has expired.
func newScript(name, source string) Script {
	return Script{redis.NewScript(fmt.Sprintf(
		"local base, reservation, gap = %[1]d, %[2]d, %[3]d\nlocal memory, version = base, '1.%[1]d:'\n\n%[4]s\n%[5]s",
		fenceMemory.Milliseconds(), reservation.Milliseconds(), fenceGap, memorySource, source)), name, source}
}

// Redis is a Backend that keeps leases in Redis 6.2 or later, or Valkey: a single server, Sentinel or Cluster. See the
// package comment for its promises.
//
// A key is a string with a TTL. It has the fence, the owner, whether others wait, and the owner that released the key
// last. The waiters are in a sorted set beside the key, in the same slot. A release passes the key to the first waiter,
// and publishes to the channel of that waiter's process.
//
// The server must not evict keys: set maxmemory-policy noeviction. With any other policy, a full server drops held
// leases, as if it had lost its data. A full server cannot renew or release leases, so keep memory free.
//
// With access control lists, the user needs the keys ~lock:*, the channels &lock:*, these commands, and the commands by
// which go-redis opens a connection:
//
//	+evalsha +eval +get +set +pttl +pexpire +time +zadd +zrange +zrem +publish +subscribe +ping +multi +exec
//
// Without the permission to subscribe, waiters are not in the queue, and ask again every tenth of the TTL.
//
// In a Cluster, a request names one key unless a caller has to wait, so that no request fails while a slot migrates. During
// the migration, waiters may not be in the queue.
type Redis struct {
	client  redis.UniversalClient
	prefix  string // of all keys and channels
	wake    *wakeups
	take    redis.Scripter // for acquisitions
	free    redis.Scripter // for releases, which never wait behind acquisitions
	keep    redis.Scripter // for renewals, which never wait behind either
	work    sync.WaitGroup // batches in progress
	cluster bool           // several servers: the answer of PUBLISH does not count all subscribers
}

// RedisOptions of a Redis backend. The zero value works.
type RedisOptions struct {
	// KeyPrefix begins the names of all keys and channels, for shops that share a server. Default "lock:"; at most 64
	// bytes, no brace. All processes of one shop need the same prefix.
	KeyPrefix string
}

// OpenRedis returns a Backend over the client, for one Locker. The caller closes the client after the Locker.
//
// OpenRedis refuses a client whose options lack ContextTimeoutEnabled, because its requests could take longer than a
// lease allows. Leave ReadTimeout and WriteTimeout at other values than -2 for the same reason. A Cluster needs a
// ClusterClient with its MaxRedirects, 3 by default; Sentinel needs a FailoverClient without ReplicaOnly. Options that
// route reads to replicas do no harm, because the lock asks only masters. A Ring, which spreads keys over independent
// servers, is refused. Any other type of client counts as a Cluster.
func OpenRedis(client redis.UniversalClient, o RedisOptions) (*Redis, error) {
	o.KeyPrefix = cmp.Or(o.KeyPrefix, "lock:")
	if len(o.KeyPrefix) > 64 || strings.ContainsAny(o.KeyPrefix, "{}") {
		return nil, fmt.Errorf("lock: KeyPrefix %q: want at most 64 bytes, and no brace", o.KeyPrefix)
	}
	heedsContext, cluster := true, true
	switch c := client.(type) {
	case *redis.Client:
		heedsContext, cluster = c.Options().ContextTimeoutEnabled, false
	case *redis.ClusterClient:
		heedsContext = c.Options().ContextTimeoutEnabled
	case *redis.Ring:
		return nil, errors.New("lock: a redis.Ring cannot keep leases: want a Client, FailoverClient or ClusterClient")
	}
	if !heedsContext {
		return nil, errors.New("lock: set ContextTimeoutEnabled in the options of the Redis client")
	}
	r := &Redis{client: client, prefix: o.KeyPrefix, cluster: cluster}
	r.wake = newWakeups(client, o.KeyPrefix, r.reloadMasters)
	r.take, r.free, r.keep = client, client, client // no pipelines in a Cluster: a slow server must not delay the others
	if !cluster {
		r.take = &pipeline{UniversalClient: client, most: 6, work: &r.work}
		r.free = &pipeline{UniversalClient: client, most: 3, work: &r.work}
		r.keep = &pipeline{UniversalClient: client, most: 8, work: &r.work}
	}
	return r, nil
}

// NewRedis is like OpenRedis, without options and for a valid client: it panics if OpenRedis returns an error.
func NewRedis(client redis.UniversalClient) *Redis {
	r, err := OpenRedis(client, RedisOptions{})
	if err != nil {
		panic(err)
	}
	return r
}

// Acquire implements Backend.
func (r *Redis) Acquire(ctx context.Context, c Claim) (Grant, error) {
	waited, queue := false, false
	if c.Queue {
		r.wake.listen(ctx)
		_, waited, queue = r.wake.expect(c.Owner) // before asking, so that no wake-up is missed
	}
	answer, err := r.run(ctx, r.take, acquireScript, c.Key, queue, waited, r.wake.name(c.Owner), c.TTL.Milliseconds())
	switch {
	case err != nil:
		return Grant{}, r.failed("acquire", err)
	case answer > 0:
		r.wake.forget(c.Owner)
		return Grant{Fence: answer}, nil
	}
	return Grant{Held: true, Retry: time.Duration(-answer) * time.Millisecond}, nil
}

// run runs a script on the lease of a key and, if queue is set, on the queue beside it. In a Cluster, it names the
// queue only if waited is set or a negative answer says that a caller has to wait. While the slot migrates, the server
// refuses a request that names both, and run asks for the lease alone. If the answer is then 0, the owner does not hold
// the key; with waited, it may still be in the queue, so run returns the refusal.
func (r *Redis) run(ctx context.Context, by redis.Scripter, s Script, key string, queue, waited bool, args ...any) (int64, error) {
	lease, line := r.keys(key)
	ask := func(how string, keys ...string) (int64, error) {
		return s.Run(ctx, by, keys, slices.Concat(args, []any{how})...).Int64()
	}
	how := ""
	if r.cluster {
		how = "cluster"
	}
	if !queue || r.cluster && !waited {
		if answer, err := ask(how, lease); err != nil || answer >= 0 || !queue {
			return answer, err
		}
	}
	answer, err := ask(how, lease, line)
	if migrating(err) {
		if alone, failed := ask("alone", lease); failed != nil || alone != 0 || !waited {
			return alone, failed
		}
	}
	return answer, err
}

// migrating reports whether a request was refused because its slot migrates to another server of the Cluster. The error may
// also be a redirect, which the client returns after too many answers of TRYAGAIN.
func migrating(err error) bool {
	return err != nil && slices.ContainsFunc([]string{"TRYAGAIN", "ASK ", "MOVED "}, func(prefix string) bool {
		return redis.HasErrorPrefix(err, prefix)
	})
}

// Wait implements Backend. A waiter asks again after a tenth of the TTL: a new or emptied server has no queue.
func (r *Redis) Wait(ctx context.Context, c Claim, g Grant) error {
	again := min(g.Retry, max(c.TTL/10, 100*time.Millisecond))
	// The jitter spreads the requests of processes. It is small compared with any TTL.
	again += rand.N(min(again/10, 250*time.Millisecond) + 5*time.Millisecond)
	woken, _, _ := r.wake.expect(c.Owner)
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
	return r.renew(ctx, "renew", c.Key, r.wake.name(c.Owner), c.TTL.Milliseconds(), c.Fence)
}

func (r *Redis) renew(ctx context.Context, request, key, owner string, ttl, fence int64) (int64, error) {
	lease, _ := r.keys(key)
	fence, err := renewScript.Run(ctx, r.keep, []string{lease}, owner, ttl, fence).Int64()
	switch {
	case err != nil:
		return 0, r.failed(request, err)
	case fence == 0:
		return 0, ErrLost
	}
	return fence, nil
}

// Release implements Backend.
func (r *Redis) Release(ctx context.Context, c Claim) error {
	r.wake.forget(c.Owner)
	fence, owner := strconv.FormatInt(c.Fence, 10), r.wake.name(c.Owner)
	answer, err := r.run(ctx, r.free, releaseScript, c.Key, true, c.Queue, fence, owner)
	switch {
	case err != nil:
		return r.failed("release", err)
	case answer == 0:
		return ErrLost
	}
	return nil
}

// heldValue matches the value of a held key, with its memory, fence and owner.
var heldValue = regexp.MustCompile(`^1\.(\d+):(\d+)[+*](\S+) `)

// Holder implements Backend. It reads Since from the fence, which is not a time after Lease.Raise.
func (r *Redis) Holder(ctx context.Context, key string) (Holder, error) {
	lease, _ := r.keys(key)
	both := r.client.TxPipeline()
	value, ttl := both.Get(ctx, lease), both.PTTL(ctx, lease)
	if _, err := both.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return Holder{}, r.failed("holder", err)
	}
	match := heldValue.FindStringSubmatch(value.Val())
	switch {
	case value.Val() != "" && !strings.HasPrefix(value.Val(), "1."):
		return Holder{}, errors.New("redis: held by another version of this package")
	case match == nil:
		return Holder{}, nil
	}
	memory, _ := strconv.ParseInt(match[1], 10, 64)
	fence, _ := strconv.ParseInt(match[2], 10, 64)
	left := ttl.Val() - time.Duration(memory)*time.Millisecond
	if left <= 0 {
		return Holder{}, nil
	}
	return Holder{Owner: match[3], Since: time.UnixMicro(fence), Remaining: left}, nil
}

// Evict implements Backend. It renews the lease with a TTL below zero.
func (r *Redis) Evict(ctx context.Context, key, owner string) error {
	_, err := r.renew(ctx, "evict", key, owner, -1, 0)
	return err
}

// failed returns the error of a request. If there was no answer, it makes the client of a Cluster look for the masters.
func (r *Redis) failed(request string, err error) error {
	var answer redis.Error
	if !errors.As(err, &answer) && !errors.Is(err, context.Canceled) {
		r.reloadMasters()
	}
	return fmt.Errorf("redis: %s: %w", request, err)
}

// reloadMasters makes the client of a Cluster find out, in the background, which servers are masters. By itself, the client
// does so if a server refuses a request. If a server has disappeared, the client would go on asking it for up to a minute.
func (r *Redis) reloadMasters() {
	if c, ok := r.client.(interface{ ReloadState(ctx context.Context) }); ok {
		c.ReloadState(context.Background())
	}
}

// Close ends the subscription. The client stays open.
func (r *Redis) Close() error {
	r.wake.close()
	r.work.Wait()
	return nil
}

// keys returns the names of the lease and of its queue, in one slot.
func (r *Redis) keys(key string) (lease, line string) {
	lease = r.prefix + "{" + key + "}"
	return lease, lease + ":line"
}

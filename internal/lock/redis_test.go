package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/testserver"
)

func TestRedis(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.Run(t, func(t *testing.T) locktest.Harness {
				options := start(t)
				options.ContextTimeoutEnabled = true
				connect := func(t testing.TB) redis.UniversalClient { return closing(t, redis.NewUniversalClient(options)) }
				return locktest.Harness{
					Connect:  func(t testing.TB) lock.Backend { return lock.NewRedis(connect(t)) },
					Expires:  true,
					Notifies: true,
					Fences:   true,
					Forget:   func(t testing.TB) { flush(t, connect(t)) },
				}
			})
		})
	}
}

// servers are the kinds of servers that people run. The suite runs against each. The suite flushes the servers, so other
// tests that use them are not parallel.
var servers = map[string]func(t testing.TB) *redis.UniversalOptions{
	"embedded": func(t testing.TB) *redis.UniversalOptions { return single(startMiniredis(t).Addr()) },
	"redis 8":  func(t testing.TB) *redis.UniversalOptions { return single(testserver.Redis(t)) },
	"redis 7": func(t testing.TB) *redis.UniversalOptions {
		return single(testserver.RedisLike(t, "Redis 7", "SHOP_TEST_REDIS7_IMAGE", "redis:7", "redis-server"))
	},
	"valkey 9": func(t testing.TB) *redis.UniversalOptions {
		return single(testserver.RedisLike(t, "Valkey", "SHOP_TEST_VALKEY_IMAGE", "valkey/valkey:9", "valkey-server"))
	},
	"cluster": func(t testing.TB) *redis.UniversalOptions {
		return &redis.UniversalOptions{Addrs: testserver.Start(t, testserver.OpenRedisCluster).Addrs}
	},
	"sentinel": func(t testing.TB) *redis.UniversalOptions {
		sentinels := testserver.Start(t, testserver.OpenRedisSentinel).Addrs[3:]
		return &redis.UniversalOptions{Addrs: sentinels, MasterName: testserver.SentinelMaster}
	},
}

func single(addr string) *redis.UniversalOptions {
	return &redis.UniversalOptions{Addrs: []string{addr}}
}

// startMiniredis returns an in-process server whose TTLs pass in real time.
func startMiniredis(t testing.TB) *miniredis.Miniredis {
	t.Helper()
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	return server
}

// nothing is for a caller of Do that only wants the lock.
func nothing(context.Context, *lock.Lease) error { return nil }

// paused reports whether a pause of the machine may cause an error, where TTLs are as short as in tests.
func paused(err error) bool {
	return errors.Is(err, lock.ErrNoAnswer) || errors.Is(err, lock.ErrLost)
}

// await fails the test if the signal does not come.
func await(t *testing.T, what string, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(time.Minute):
		t.Fatalf("%s: nothing happened for a minute", what)
	}
}

// newLocker returns a Locker that is closed at the end of the test.
func newLocker(t testing.TB, b lock.Backend, o lock.Options) *lock.Locker {
	t.Helper()
	l := lock.New(b, o)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

// "A lost message, or a store that lost its data, delays a waiter by about a tenth of the TTL; a waiter never hangs":
// scripts are forgotten and subscriptions cut while 4 lockers x 8 goroutines take turns.
func TestRedis_ScriptFlushAndReconnect(t *testing.T) {
	const lockers, goroutines, turns = 4, 8, 25
	addr := testserver.Redis(t)
	admin := connect(t, addr)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	var wg sync.WaitGroup
	count := 0 // guarded by the lock
	for range lockers {
		locker := newLocker(t, lock.NewRedis(connect(t, addr)), lock.Options{TTL: 2 * time.Second})
		for range goroutines {
			wg.Go(func() {
				for n := 0; n < turns; {
					err := locker.Do(ctx, t.Name(), func(ctx context.Context, lease *lock.Lease) error {
						if lease.Remaining() == 0 {
							return nil // a pause took it, and with it the turn
						}
						n++
						if count++; count%20 != 0 {
							return nil
						}
						if err := admin.ScriptFlush(ctx).Err(); err != nil {
							return err
						}
						return admin.ClientKillByFilter(ctx, "TYPE", "pubsub").Err()
					})
					if err != nil && !paused(err) {
						t.Errorf("Do: %v", err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	if want := lockers * goroutines * turns; count != want {
		t.Errorf("%d turns, want %d", count, want)
	}
}

// "Without the permission to subscribe, waiters are not in the queue, and ask again every tenth of the TTL."
func TestRedis_NoRightToSubscribe(t *testing.T) {
	admin := connect(t, testserver.Redis(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	restrict(t, admin, "deaf", "~*", "+@all", "resetchannels")
	var wg sync.WaitGroup
	for range 3 {
		client := redis.NewClient(&redis.Options{
			Addr: admin.Options().Addr, Username: "deaf", Password: "deaf", ContextTimeoutEnabled: true,
		})
		t.Cleanup(func() { _ = client.Close() })
		locker := newLocker(t, lock.NewRedis(client), lock.Options{TTL: time.Second})
		wg.Go(func() {
			for range 2 {
				err := locker.Do(ctx, t.Name(), nothing)
				for paused(err) {
					err = locker.Do(ctx, t.Name(), nothing)
				}
				if err != nil {
					t.Errorf("Do: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// "If a database has already accepted a higher fence, it then refuses the write, and Lease.Raise gets a higher fence": a
// server that lost its data and an hour mints lower fences. Raise gets a fence above those that the database has seen.
func TestRedis_ClockStepsBack(t *testing.T) {
	server := startMiniredis(t)
	locker := newLocker(t, lock.NewRedis(connect(t, server.Addr())), lock.Options{})
	seen := nextFence(t, locker)
	server.FlushAll()
	server.SetTime(time.Now().Add(-time.Hour))
	lease := mustAcquire(t, locker, "key")
	if lease.Fence() > seen {
		t.Errorf("got fence %d, want a fence of %d at most: the test means nothing otherwise", lease.Fence(), seen)
	}
	if err := lease.Raise(t.Context(), seen); err != nil || lease.Fence() <= seen {
		t.Errorf("raised fence %d, %v; want more than %d", lease.Fence(), err, seen)
	}
	seen = lease.Fence()
	mustRelease(t, lease)
	if fence := nextFence(t, locker); fence <= seen {
		t.Errorf("fence %d after %d", fence, seen)
	}
}

// The server's clock steps back while the key is free: "the last fence of a key is kept after its lease".
func TestRedis_ClockStepsBackWhileFree(t *testing.T) {
	server := startMiniredis(t)
	locker := newLocker(t, lock.NewRedis(connect(t, server.Addr())), lock.Options{})
	server.SetTime(time.Now())
	last := nextFence(t, locker)
	server.SetTime(time.Now().Add(-30 * time.Second))
	if fence := nextFence(t, locker); fence <= last {
		t.Errorf("fence %d after %d", fence, last)
	}
}

// nextFence returns the fence of a lease that it releases at once.
func nextFence(t *testing.T, l *lock.Locker) int64 {
	t.Helper()
	lease := mustAcquire(t, l, "key")
	defer mustRelease(t, lease)
	return lease.Fence()
}

// Every key that a script touches is in KEYS and in one slot, whatever the user's key looks like; and nothing of a lease
// is kept for ever.
func TestRedis_KeysShareASlotAndExpire(t *testing.T) {
	server := miniredis.RunT(t) // its clock stands still: everything is still there
	holder := newLocker(t, lock.NewRedis(connect(t, server.Addr())), lock.Options{})
	backend := lock.NewRedis(connect(t, server.Addr()))
	t.Cleanup(func() { _ = backend.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, key := range []string{"sku:42", "a{b}c", "a}b", "{", "{}", "ünï côde"} {
		lease := mustAcquire(t, holder, key)
		waiter := lock.Claim{Key: key, Owner: "waiter", TTL: time.Second, Queue: true}
		if g, err := backend.Acquire(ctx, waiter); err != nil || !g.Held {
			t.Fatalf("Acquire(%q) by another: %+v, %v", key, g, err)
		}
		keys := server.Keys()
		if len(keys) != 2 {
			t.Errorf("%q: keys %q, want a lease and a line", key, keys)
		}
		tags := map[string]bool{}
		for _, k := range keys {
			tags[hashTag(k)] = true
			if !strings.HasPrefix(k, "lock:") {
				t.Errorf("%q: %q lacks the prefix", key, k)
			}
			if server.TTL(k) == 0 {
				t.Errorf("%q: %q never expires", key, k)
			}
		}
		if len(tags) != 1 {
			t.Errorf("%q: %d slots: %q", key, len(tags), keys)
		}
		if err := backend.Release(t.Context(), waiter); err == nil {
			t.Errorf("%q: a waiter could release", key)
		}
		mustRelease(t, lease)
		for _, k := range server.Keys() {
			if server.TTL(k) == 0 {
				t.Errorf("%q: %q stays for ever after the release", key, k)
			}
		}
		server.FlushAll()
	}
}

// hashTag is the part of a key that decides on its slot, by the cluster specification.
func hashTag(key string) string {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

// "A store that lost its data, delays a waiter by about a tenth of the TTL": the waiter is forgotten with its lease,
// so no release wakes it.
func TestRedis_FlushedWhileWaiting(t *testing.T) {
	t.Parallel()
	server := startMiniredis(t)
	o := lock.Options{TTL: 20 * time.Second}
	tap := locktest.NewTap(lock.NewRedis(connect(t, server.Addr())))
	waiter := newLocker(t, tap, o)
	lease := mustAcquire(t, newLocker(t, lock.NewRedis(connect(t, server.Addr())), o), "key")
	served := make(chan error, 1)
	go func() { served <- waiter.Do(t.Context(), "key", nothing) }()
	await(t, "waiter", tap.Seen(locktest.Wait, 1))
	server.FlushAll()
	began := time.Now()
	if err := lease.Release(); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want ErrLost", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if waited := time.Since(began); waited > o.TTL/2 {
		t.Errorf("waited %v for a free key, TTL %v", waited, o.TTL)
	}
}

// Another version of the package, which counts in another way, takes a key for held until it is gone; and this version
// does so with a value that it does not know.
func TestRedis_OtherVersion(t *testing.T) {
	t.Parallel()
	server := startMiniredis(t)
	locker := newLocker(t, lock.NewRedis(connect(t, server.Addr())), lock.Options{})
	const foreign = "2.1000:1700000000000000+theirs:owner -"
	if err := server.Set("lock:{key}", foreign); err != nil {
		t.Fatal(err)
	}
	server.SetTTL("lock:{key}", time.Hour)
	if _, err := locker.TryAcquire(t.Context(), "key"); !errors.Is(err, lock.ErrNotAcquired) {
		t.Errorf("TryAcquire: %v, want ErrNotAcquired", err)
	}
	if got, _ := server.Get("lock:{key}"); got != foreign {
		t.Errorf("the value became %q", got)
	}
	server.Del("lock:{key}")
	if err := locker.Do(t.Context(), "key", nothing); err != nil {
		t.Errorf("when it is gone: %v", err)
	}
	if got, _ := server.Get("lock:{key}"); !strings.HasPrefix(got, "1.60000:") {
		t.Errorf("stored %q, want it to begin with its version", got)
	}
}

// "If the fence is ahead of the server's clock, the time begins when the clock has passed the fence", even if its
// holder has crashed, or another process was woken for the key and never came.
func TestRedis_RaisedFenceIsRemembered(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, held *lock.Lease, b lock.Backend){
		"released": func(t *testing.T, held *lock.Lease, _ lock.Backend) { mustRelease(t, held) },
		"crashed":  func(*testing.T, *lock.Lease, lock.Backend) {},
		"released to a waiter that is gone": func(t *testing.T, held *lock.Lease, b lock.Backend) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if g, err := b.Acquire(ctx, lock.Claim{Key: "key", Owner: "gone", TTL: time.Second, Queue: true}); err != nil || !g.Held {
				t.Fatalf("Acquire: %+v, %v", g, err)
			}
			mustRelease(t, held)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, now := miniredis.RunT(t), time.Now() // its clock stands still
			server.SetTime(now)
			backend := lock.NewRedis(connect(t, server.Addr()))
			holder := lock.New(backend, lock.Options{})
			t.Cleanup(func() { _ = holder.Close() })
			lease := mustAcquire(t, holder, "key")
			if err := lease.Raise(t.Context(), now.Add(24*time.Hour).UnixMicro()); err != nil {
				t.Fatal(err)
			}
			raised := lease.Fence()
			end(t, lease, backend)
			server.FastForward(23 * time.Hour)
			server.SetTime(now.Add(23 * time.Hour))
			other := newLocker(t, lock.NewRedis(connect(t, server.Addr())), lock.Options{})
			next, err := other.TryAcquire(t.Context(), "key")
			if err != nil {
				t.Fatal(err)
			}
			if next.Fence() <= raised {
				t.Errorf("fence %d after %d", next.Fence(), raised)
			}
			if h, err := other.Holder(t.Context(), "key"); err != nil || h.Remaining > 10*time.Second || h.Remaining < 9*time.Second {
				t.Errorf("Holder: %+v, %v; want one whose lease lasts 10 s", h, err)
			}
			mustRelease(t, next)
			server.FastForward(time.Hour + 2*time.Minute)
			if keys := server.Keys(); len(keys) > 0 {
				t.Errorf("%q are kept though the clock has passed the fence", keys)
			}
		})
	}
}

// withheld is a hook of a client that holds back one kind of script until its context ends.
type withheld struct {
	redis.Hook // none of its methods but those below is called
	hash       string
	asked      chan struct{}
}

func (w withheld) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w withheld) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if len(cmd.Args()) < 2 || cmd.Args()[1] != w.hash {
			return next(ctx, cmd)
		}
		w.asked <- struct{}{}
		<-ctx.Done()
		cmd.SetErr(ctx.Err())
		return ctx.Err()
	}
}

func (w withheld) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		one := w.ProcessHook(func(ctx context.Context, _ redis.Cmder) error { return next(ctx, cmds) })
		return one(ctx, cmds[0]) // all are of one kind
	}
}

// "Renewals and releases do not wait behind acquisitions that the store does not answer."
func TestRedis_RenewalsPassAcquisitions(t *testing.T) {
	t.Parallel()
	client := connect(t, startMiniredis(t).Addr())
	tap := locktest.NewTap(lock.NewRedis(client))
	locker := newLocker(t, tap, lock.Options{TTL: 300 * time.Millisecond})
	lease := mustAcquire(t, locker, "key")
	held := withheld{hash: lock.Scripts()[0].Hash(), asked: make(chan struct{}, 100)} // acquisitions
	client.AddHook(held)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() { _, _ = locker.Acquire(ctx, fmt.Sprint("other", i)) })
		if i < 6 { // as many as are under way at a time
			await(t, "acquisition", held.asked)
		}
	}
	await(t, "renewals", tap.Seen(locktest.Renew, tap.Count(locktest.Renew)+5)) // one after the answer of another
	mustRelease(t, lease)
	cancel()
	all.Wait()
}

// restrict makes a user with these rights and its own name as password.
func restrict(t *testing.T, admin *redis.Client, user string, rights ...any) {
	t.Helper()
	args := append([]any{"ACL", "SETUSER", user, "reset", "on", ">" + user}, rights...)
	if err := admin.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Do(context.Background(), "ACL", "DELUSER", user).Err() })
}

// "The user needs the keys ~lock:*, the channels &lock:*, these commands, and the commands by which go-redis opens a
// connection": a user with only these permissions waits, is woken, renews, sees the holder and evicts it.
func TestRedis_Rights(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("redis.go")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^//\t(\+evalsha .*)$`).FindStringSubmatch(string(source))
	if commands == nil {
		t.Fatal("redis.go lists no commands")
	}
	admin := connect(t, testserver.Redis(t))
	rights := []any{"~lock:*", "&lock:*", "+hello", "+client|setinfo"}
	for command := range strings.FieldsSeq(commands[1]) {
		rights = append(rights, command)
	}
	restrict(t, admin, "exact", rights...)
	process := func() *lock.Redis {
		return lock.NewRedis(closing(t, redis.NewClient(&redis.Options{
			Addr: admin.Options().Addr, Username: "exact", Password: "exact", ContextTimeoutEnabled: true,
		})))
	}
	tap := locktest.NewTap(process())
	holder, waiter := newLocker(t, process(), lock.Options{TTL: time.Minute}), newLocker(t, tap, lock.Options{TTL: time.Minute})
	lease := mustAcquire(t, holder, t.Name())
	if err := lease.Raise(t.Context(), lease.Fence()); err != nil { // a renewal
		t.Error(err)
	}
	if h, err := holder.Holder(t.Context(), t.Name()); err != nil || h.Owner == "" {
		t.Errorf("Holder: %+v, %v", h, err)
	}
	served := make(chan error, 1)
	go func() { served <- waiter.Do(t.Context(), t.Name(), nothing) }()
	await(t, "waiter", tap.Seen(locktest.Wait, 1))
	began := time.Now()
	mustPass(t, lease, served)
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the waiter had the key after %v: it was not woken", took)
	}
	lease = mustAcquire(t, holder, t.Name())
	if _, err := holder.ForceRelease(t.Context(), t.Name()); err != nil {
		t.Errorf("ForceRelease: %v", err)
	}
	_ = lease.Release()
	refused, err := admin.Do(t.Context(), "ACL", "LOG").Slice()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range refused {
		if strings.Contains(fmt.Sprint(entry), "username:exact") {
			t.Errorf("refused: %v", entry)
		}
	}
}

// "KeyPrefix begins the names of all keys and channels, for shops that share a server."
func TestRedis_KeyPrefix(t *testing.T) {
	t.Parallel()
	server := startMiniredis(t)
	process := func(prefix string) (*lock.Locker, *locktest.Tap) {
		b, err := lock.OpenRedis(connect(t, server.Addr()), lock.RedisOptions{KeyPrefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		tap := locktest.NewTap(b)
		return newLocker(t, tap, lock.Options{TTL: time.Minute}), tap
	}
	ours, _ := process("shop-a:")
	theirs, _ := process("shop-b:")
	lease := mustAcquire(t, ours, "key")
	mustRelease(t, mustAcquire(t, theirs, "key"))
	waiter, tap := process("shop-a:")
	served := make(chan error, 1)
	go func() { served <- waiter.Do(t.Context(), "key", nothing) }()
	await(t, "waiter", tap.Seen(locktest.Wait, 1))
	for _, name := range append(server.Keys(), server.PubSubChannels("")...) {
		if !strings.HasPrefix(name, "shop-") {
			t.Errorf("%q begins with no prefix", name)
		}
	}
	mustPass(t, lease, served)
}

// OpenRedis refuses clients that cannot keep its promises, and NewRedis panics on them.
func TestOpenRedis_refuses(t *testing.T) {
	t.Parallel()
	if _, err := lock.OpenRedis(connect(t, "127.0.0.1:1"), lock.RedisOptions{KeyPrefix: "a{b}"}); err == nil || !strings.Contains(err.Error(), "KeyPrefix") {
		t.Errorf("a brace in the prefix: %v", err)
	}
	for name, client := range map[string]redis.UniversalClient{
		"client without ContextTimeoutEnabled":  redis.NewClient(&redis.Options{}),
		"cluster without ContextTimeoutEnabled": redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}),
		"Ring":                                  redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}}),
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			if _, err := lock.OpenRedis(client, lock.RedisOptions{}); err == nil {
				t.Errorf("%s: no error", name)
			}
			lock.NewRedis(client)
		}()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

// "A number that leaves no room for later fences is refused", and the lease does not change. The highest number that is not
// refused is followed by higher fences.
func TestLease_Raise_range(t *testing.T) {
	for name, c := range map[string]struct {
		backend lock.Backend
		most    int64
	}{
		"redis":  {lock.NewRedis(connect(t, testserver.Redis(t))), 1<<52 - 1},
		"memory": {lock.NewMemory(), 1<<62 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			locker := newLocker(t, c.backend, lock.Options{})
			lease := mustAcquire(t, locker, t.Name())
			first := lease.Fence()
			for _, above := range []int64{c.most + 1, 1 << 62, math.MaxInt64} {
				if err := lease.Raise(t.Context(), above); err == nil || lease.Fence() != first || lease.Context().Err() != nil {
					t.Errorf("above %d: got fence %d and %v (%v), want fence %d and an error", above, lease.Fence(), err, lease.Context().Err(), first)
				}
			}
			if err := lease.Raise(t.Context(), c.most); err != nil || lease.Fence() <= c.most {
				t.Errorf("above %d: got fence %d and %v", c.most, lease.Fence(), err)
			}
			raised := lease.Fence()
			for range 3 {
				mustRelease(t, lease)
				if lease = mustAcquire(t, locker, t.Name()); lease.Fence() <= raised {
					t.Errorf("got fence %d after %d", lease.Fence(), raised)
				}
				raised = lease.Fence()
			}
			// A lease with such a fence can be renewed: Raise renews it and raises the fence by one.
			if name == "redis" {
				if err := lease.Raise(t.Context(), raised); err != nil {
					t.Errorf("renewal of fence %d: %v", raised, err)
				}
			}
			mustRelease(t, lease)
		})
	}
}

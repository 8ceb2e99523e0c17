package lock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/lock/testserver"
)

func TestRedis(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.Run(t, func(t *testing.T) locktest.Harness {
				connect := start(t)
				return locktest.Harness{
					Connect:         func(t testing.TB) lock.Backend { return lock.NewRedis(connect(t)) },
					Expires:         true,
					Notifies:        true,
					Fences:          true,
					Raises:          true,
					FirstInFirstOut: true,
					Forget:          func(t testing.TB) { flush(t, connect(t)) },
				}
			})
		})
	}
}

// servers are those that the suite runs against: all that people run. Nothing
// else uses them while it does, for it flushes them.
var servers = map[string]func(t testing.TB) dial{
	"embedded": func(t testing.TB) dial { return single(startMiniredis(t).Addr()) },
	"redis 8":  func(t testing.TB) dial { return single(testserver.Redis(t)) },
	"redis 7":  func(t testing.TB) dial { return single(testserver.Redis7(t)) },
	"valkey 9": func(t testing.TB) dial { return single(testserver.Valkey(t)) },
	"cluster":  func(t testing.TB) dial { return cluster(testserver.StartRedisCluster(t)) },
	"sentinel": func(t testing.TB) dial {
		_, sentinels := testserver.StartRedisSentinel(t)
		return sentinel(sentinels)
	},
}

// startMiniredis returns an in-process server whose TTLs pass in real time.
func startMiniredis(t testing.TB) *miniredis.Miniredis {
	t.Helper()
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	return server
}

// nothing is what one does who only wants the lock.
func nothing(context.Context, *lock.Lease) error { return nil }

// paused reports whether an error is one that a pause of the machine brings about,
// where TTLs are as short as in tests.
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

// newLocker returns one that is closed at the end of the test.
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

// "a lost notification, a reconnect or a script flush delays and never hangs":
// scripts are forgotten and subscriptions cut while 4 lockers x 8 goroutines
// take turns.
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

// "Without the right to subscribe, who waits is not told of a release, and asks
// again when the holder's time is over."
func TestRedis_NoRightToSubscribe(t *testing.T) {
	admin := connect(t, testserver.Redis(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := admin.Do(ctx, "ACL", "SETUSER", "deaf", "on", ">deaf", "~*", "+@all", "resetchannels").Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Do(context.Background(), "ACL", "DELUSER", "deaf").Err() })
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

// "a stepped-back clock costs a retry, never a wedge": a server that lost its
// memory and an hour mints lower numbers; Raise gets above those that the
// database has seen.
func TestRedis_ClockStepsBack(t *testing.T) {
	server := startMiniredis(t)
	locker := newLocker(t, lock.NewRedis(connect(t, server.Addr())), lock.Options{})
	var seen int64
	err := locker.Do(t.Context(), "key", func(_ context.Context, lease *lock.Lease) error {
		seen = lease.Fence()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	server.FlushAll()
	server.SetTime(time.Now().Add(-time.Hour))
	err = locker.Do(t.Context(), "key", func(ctx context.Context, lease *lock.Lease) error {
		if lease.Fence() > seen {
			t.Errorf("fence %d, want one below %d for the test to mean anything", lease.Fence(), seen)
		}
		if err := lease.Raise(ctx, seen); err != nil {
			return err
		}
		if lease.Fence() <= seen {
			t.Errorf("raised fence %d, want more than %d", lease.Fence(), seen)
		}
		seen = lease.Fence()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = locker.Do(t.Context(), "key", func(_ context.Context, lease *lock.Lease) error {
		if lease.Fence() <= seen {
			t.Errorf("fence %d after %d", lease.Fence(), seen)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// "a step of the server's clock while the key is free": the last fence is
// remembered for a minute.
func TestRedis_ClockStepsBackWhileFree(t *testing.T) {
	server := startMiniredis(t)
	locker := newLocker(t, lock.NewRedis(connect(t, server.Addr())), lock.Options{})
	var last int64
	for _, now := range []time.Time{time.Now(), time.Now().Add(-30 * time.Second)} {
		server.SetTime(now)
		err := locker.Do(t.Context(), "key", func(_ context.Context, lease *lock.Lease) error {
			if lease.Fence() <= last {
				t.Errorf("fence %d after %d", lease.Fence(), last)
			}
			last = lease.Fence()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// "every key a script touches is in KEYS and in one slot", whatever the user's
// key looks like; and nothing of a lease is kept for ever.
func TestRedis_KeysShareASlotAndExpire(t *testing.T) {
	server := miniredis.RunT(t) // its clock stands still: everything is still there
	holder := newLocker(t, lock.NewRedis(connect(t, server.Addr()), lock.WithPrefix("shop:")), lock.Options{})
	backend := lock.NewRedis(connect(t, server.Addr()), lock.WithPrefix("shop:"))
	t.Cleanup(func() { _ = backend.Close() })
	for _, key := range []string{"sku:42", "a{b}c", "a}b", "{", "{}", "ünï côde"} {
		lease, err := holder.Acquire(t.Context(), key)
		if err != nil {
			t.Fatalf("Acquire(%q): %v", key, err)
		}
		waiter := lock.Claim{Key: key, Owner: "waiter", TTL: time.Second, Queue: true}
		if g, err := backend.Acquire(t.Context(), waiter); err != nil || !g.Held {
			t.Fatalf("Acquire(%q) by another: %+v, %v", key, g, err)
		}
		keys := server.Keys()
		if len(keys) != 2 {
			t.Errorf("%q: keys %q, want a lease and a line", key, keys)
		}
		tags := map[string]bool{}
		for _, k := range keys {
			tags[hashTag(k)] = true
			if !strings.HasPrefix(k, "shop:") {
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
		if err := lease.Release(); err != nil {
			t.Fatalf("Release(%q): %v", key, err)
		}
		for _, k := range server.Keys() {
			if server.TTL(k) == 0 {
				t.Errorf("%q: %q stays for ever after the release", key, k)
			}
		}
		server.FlushAll()
	}
}

// hashTag is the part of a key that decides on its slot, by the cluster
// specification.
func hashTag(key string) string {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/lock/redlock"
	"example.com/shop/internal/testserver"
)

func TestMain(m *testing.M) {
	logging.Disable() // of each dial to a node that a test has taken down
	goleak.VerifyTestMain(testserver.Wrap(m))
}

func TestRedlock(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t testing.TB) []string{
		"embedded": func(t testing.TB) []string { return addrs(startNodes(t)) },
		"Redis 8": func(t testing.TB) (all []string) {
			for database := range 5 { // of one server: none answers less than the others here
				all = append(all, fmt.Sprintf("%s/%d", testserver.Redis(t), database))
			}
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.Run(t, func(t *testing.T) locktest.Harness {
				nodes := start(t)
				return locktest.Harness{
					Connect: func(t testing.TB) lock.Backend {
						clients, _ := connect(t, nodes)
						// Every node answers here: on a busy machine a slow one is no outage.
						return redlock.New(clients, redlock.Options{NodeTimeout: patience})
					},
					Expires: true,
					Forget: func(t testing.TB) {
						t.Helper()
						clients, _ := connect(t, nodes)
						for _, client := range clients {
							testserver.Must(t, client.FlushAll(t.Context()).Err())
						}
					},
				}
			})
		})
	}
}

// "There is no fence: Lease.Fence is 0."
func TestBackend_NoFence(t *testing.T) {
	b, _ := newBackend(t, addrs(startNodes(t)), redlock.Options{NodeTimeout: patience})
	locker := lock.New(b, lock.Options{})
	defer func() { _ = locker.Close() }()
	err := locker.Do(bounded(t), "key", func(ctx context.Context, lease *lock.Lease) error {
		if lease.Fence() != 0 {
			t.Errorf("fence %d, want 0", lease.Fence())
		}
		if lease.Raise(ctx, 1) == nil {
			t.Error("raised a fence that does not exist")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// "A grant without validity does not count": the TTL is over before the third node answers.
func TestBackend_NoValidityLeft(t *testing.T) {
	servers := startNodes(t)
	b, gates := newBackend(t, addrs(servers), redlock.Options{NodeTimeout: patience})
	c := lock.Claim{Key: "key", Owner: "me", TTL: 30 * time.Millisecond, Queue: true}
	for _, g := range gates[:3] {
		g.hold()
	}
	answer := make(chan lock.Grant, 1)
	began := time.Now()
	go func() {
		g, err := b.Acquire(bounded(t), c)
		if err != nil {
			t.Errorf("Acquire: %v", err)
		}
		answer <- g
	}()
	<-gates[0].arrived
	time.Sleep(time.Until(began.Add(c.TTL))) // what is tested is that time passes
	for _, g := range gates[:3] {
		g.open()
	}
	if g := <-answer; !g.Held {
		t.Errorf("%+v, want no grant", g)
	}
	mustBeEmpty(t, b, servers...)
}

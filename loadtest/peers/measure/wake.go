package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/loadtest/peers/peer"
	"example.com/shop/loadtest/stats"
)

// Wake is how long a waiter in another client takes to hold what was released.
type Wake struct {
	Samples    int
	Woken      time.Duration // median from the release's call until the waiter learned of it; 0: not seen
	FromCall   time.Duration // median, since the release was called
	FromReturn time.Duration // median, since it returned; negative: the waiter was first
	Ping       time.Duration // median round trip, taken in turn with the others
	Longest    time.Duration // since the call
	Hung       error
	Failed     error // what ended the measurement early
}

// RoundTrips returns one of its durations in round trips.
func (w Wake) RoundTrips(d time.Duration) float64 {
	if w.Ping <= 0 {
		return 0
	}
	return float64(d) / float64(w.Ping)
}

// settle is how long a waiter gets to stand in line. It varies, so that a peer
// that polls is met at any moment between two attempts.
func settle() time.Duration { return 5*time.Millisecond + rand.N(2*time.Millisecond) }

// waker has one client release and another wait.
type waker struct {
	holder, waiter peer.Client
	redis          *redis.Client
	key            string

	woken, fromCall, fromReturn, pings []time.Duration
}

// RunWake measures for as long as total says.
func RunWake(ctx context.Context, p peer.Peer, addr, key string, total time.Duration, dog Watchdog) (Wake, error) {
	clients, err := openClients(ctx, p, addr, 2)
	if err != nil {
		return Wake{}, err
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = rdb.Close() }()
	w := &waker{holder: clients[0], waiter: clients[1], redis: rdb, key: key}
	failed := make(chan error, 1)
	hung := dog.Watch(ctx, func(ctx context.Context, alive func()) { failed <- w.run(ctx, total, alive) })
	if ctx.Err() != nil {
		return Wake{}, ctx.Err()
	}
	if hung != nil {
		_ = closeClients(clients, dog.Grace)
		return Wake{Hung: hung}, nil
	}
	return Wake{
		Samples:    len(w.fromCall),
		Woken:      stats.Median(w.woken),
		FromCall:   stats.Median(w.fromCall),
		FromReturn: stats.Median(w.fromReturn),
		Ping:       stats.Median(w.pings),
		Longest:    stats.Max(w.fromCall),
		Failed:     <-failed,
	}, closeClients(clients, dog.Grace)
}

func (w *waker) run(ctx context.Context, total time.Duration, alive func()) error {
	ctx, cancel := context.WithTimeout(ctx, longRun)
	defer cancel()
	for i := range 3 { // connections, scripts, subscriptions
		if err := w.sample(ctx); err != nil {
			return fmt.Errorf("sample %d: %w", i+1, err)
		}
	}
	w.woken, w.fromCall, w.fromReturn, w.pings = nil, nil, nil, nil
	for end := time.Now().Add(total); time.Now().Before(end); {
		if err := w.sample(ctx); err != nil {
			return fmt.Errorf("sample %d: %w", len(w.fromCall)+1, err)
		}
		alive()
	}
	return nil
}

func (w *waker) sample(ctx context.Context) error {
	release, err := w.holder.Acquire(ctx, w.key)
	if err != nil {
		return err
	}
	type taken struct {
		at      time.Time
		release func() error
		err     error
	}
	next := make(chan taken, 1)
	go func() {
		release, err := w.waiter.Acquire(ctx, w.key)
		next <- taken{time.Now(), release, err}
	}()
	time.Sleep(settle())
	sent := time.Now()
	if err := w.redis.Ping(ctx).Err(); err != nil {
		return err
	}
	w.pings = append(w.pings, time.Since(sent))
	time.Sleep(settle())

	called := time.Now()
	err = release()
	returned := time.Now()
	if err != nil {
		return err
	}
	t := <-next
	if t.err != nil {
		return t.err
	}
	if waiter, ok := w.waiter.(peer.Waker); ok {
		w.woken = append(w.woken, waiter.Woken().Sub(called.Round(0))) // by the wall clock
	}
	w.fromCall = append(w.fromCall, t.at.Sub(called))
	w.fromReturn = append(w.fromReturn, t.at.Sub(returned))
	return t.release()
}

package processes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest/history"
)

const (
	childArgs = "SHOP_TEST_LOCK_CHILD" // arguments, as JSON: this process is a child

	goroutines = 8 // of each child
	ttl        = 500 * time.Millisecond
	longest    = 2 * time.Millisecond // that a turn takes
	look       = 200 * time.Microsecond
)

// keys are those that all want.
var keys = []string{"a", "b", "c"}

type arguments struct{ Name, Store, Addr string }

// report is what a child says of a lease, when it begins and again when it ends.
type report struct {
	Child string
	ID    int64 // within the child
	Held  bool  // for as long as it can be had, as the parent asked
	Ended bool
	Lease history.Lease
}

// child is a process that takes turns under the lock.
type child struct {
	name   string
	grants *grants
	locker *lock.Locker
	ids    atomic.Int64
	hold   atomic.Bool // the next lease is to be held

	mu  sync.Mutex
	out *json.Encoder
}

// beChild takes turns until its input ends. Each line of input makes it hold one
// more lease for as long as it can have it.
func beChild(args string) error {
	var a arguments
	if err := json.Unmarshal([]byte(args), &a); err != nil {
		return err
	}
	store, done := stores[a.Store](a.Addr)
	g := &grants{Backend: store, sent: make(map[string]time.Time)}
	c := &child{
		name: a.Name, grants: g, out: json.NewEncoder(os.Stdout),
		locker: lock.New(g, lock.Options{TTL: ttl, MaxWait: -1}),
	}
	return errors.Join(c.work(os.Stdin), c.locker.Close(), done())
}

func (c *child) work(commands io.Reader) error {
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, goroutines)
	for i := range goroutines {
		go func() {
			name := fmt.Sprintf("%s.%d", c.name, i+1)
			var err error
			for ctx.Err() == nil && err == nil {
				err = c.turn(ctx, name)
			}
			failed <- err
		}()
	}
	in := bufio.NewScanner(commands)
	for in.Scan() {
		c.hold.Store(true)
	}
	cancel()
	err := in.Err()
	for range goroutines {
		err = errors.Join(err, <-failed)
	}
	return err
}

// turn is one lease, or one attempt: some callers do not wait for long.
func (c *child) turn(ctx context.Context, name string) error {
	if rand.N(8) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rand.N(20*time.Millisecond))
		defer cancel()
	}
	key := keys[rand.N(len(keys))]
	lease, err := c.locker.Acquire(ctx, key)
	if errors.Is(err, lock.ErrNotAcquired) {
		return nil
	}
	if err != nil {
		return err
	}
	now := clock()
	r := report{Child: c.name, ID: c.ids.Add(1), Held: c.hold.CompareAndSwap(true, false), Lease: history.Lease{
		Key: key, Holder: name, Fence: lease.Fence(), Since: c.grants.of(key), Begin: now, End: now,
	}}
	trusted := looksAt(lease, &r.Lease)
	if err := c.say(r); err != nil {
		return err
	}
	for end := now.Add(rand.N(longest)); trusted && (r.Held || clock().Before(end)); trusted = looksAt(lease, &r.Lease) {
		time.Sleep(look)
	}
	r.Ended = true
	if err := c.say(r); err != nil {
		return err
	}
	err = lease.Release()
	if errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrNoAnswer) { // given back in the background
		return nil
	}
	return err
}

// looksAt moves the end of what is told of a lease to now if it is still trusted
// afterwards, and reports whether it is.
func looksAt(lease *lock.Lease, told *history.Lease) bool {
	now := clock()
	if lease.Remaining() == 0 {
		return false
	}
	told.End = now
	return true
}

// say writes a report in one piece: a child that is killed leaves no half of it.
func (c *child) say(r report) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Encode(r)
}

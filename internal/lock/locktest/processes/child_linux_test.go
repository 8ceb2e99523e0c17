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
	"syscall"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

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

type arguments struct {
	Name string
	Addr string // of Redis; without it the child locks by a memory of its own, which has to be noticed
}

// report is what a child reports of a lease, when it begins and again when it ends.
type report struct {
	Child string
	ID    int64 // within the child
	Held  bool  // for as long as possible, as the parent asked
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

// beChild takes turns until its input ends. Each line of input makes it hold one more lease for as long as it can.
func beChild(args string) error {
	var a arguments
	if err := json.Unmarshal([]byte(args), &a); err != nil {
		return err
	}
	store, done := open(a.Addr)
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
	trusted := extend(lease, &r.Lease)
	if err := c.report(r); err != nil {
		return err
	}
	for end := now.Add(rand.N(longest)); trusted && (r.Held || clock().Before(end)); trusted = extend(lease, &r.Lease) {
		time.Sleep(look)
	}
	r.Ended = true
	if err := c.report(r); err != nil {
		return err
	}
	err = lease.Release()
	if errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrNoAnswer) { // given back in the background
		return nil
	}
	return err
}

// extend moves the reported end of a lease to now if it is still trusted afterwards, and returns whether it is.
func extend(lease *lock.Lease, reported *history.Lease) bool {
	now := clock()
	if lease.Remaining() == 0 {
		return false
	}
	reported.End = now
	return true
}

// report writes a report in one piece: a child that is killed leaves no half of it.
func (c *child) report(r report) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Encode(r)
}

// open returns the store, and a function that closes what was opened.
func open(addr string) (lock.Backend, func() error) {
	if addr == "" {
		return lock.NewMemory(), func() error { return nil }
	}
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	return lock.NewRedis(client), client.Close
}

// grants remembers when the request was sent that got this process a key: also of leases that are handed over.
type grants struct {
	lock.Backend

	mu   sync.Mutex
	sent map[string]time.Time // by key
}

func (b *grants) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	sent := clock()
	g, err := b.Backend.Acquire(ctx, c)
	if err == nil && !g.Held {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.sent[c.Key] = sent
	}
	return g, err
}

func (b *grants) of(key string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent[key]
}

// clock reads CLOCK_MONOTONIC, whose zero is the same for all processes of the machine. Package time shows only how it
// differs from an earlier reading of the same process.
func clock() time.Time {
	const monotonic = 1
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		panic(errno)
	}
	return time.Unix(ts.Unix()).UTC()
}

package lock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
)

// An unusable key is an ErrNotAcquired with ErrKey.
func TestLocker_UnusableKey(t *testing.T) {
	locker := newLocker(t, lock.NewMemory(), lock.Options{})
	for _, key := range []string{"", "}", "}a", strings.Repeat("k", lock.MaxKey+1)} {
		if _, err := locker.Acquire(t.Context(), key); !errors.Is(err, lock.ErrKey) || !errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("Acquire(%.20q): %v, want ErrKey and ErrNotAcquired", key, err)
		}
	}
}

// MaxWait "bounds the wait for a key, as the caller's context does".
func TestLocker_MaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t, lock.NewMemory(), lock.Options{MaxWait: 20 * time.Millisecond})
		mustAcquire(t, locker, "key")
		_, err := locker.Acquire(t.Context(), "key")
		if !errors.Is(err, lock.ErrTimeout) || !errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("Acquire: %v, want ErrTimeout and ErrNotAcquired", err)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire: %v blames the caller's context", err)
		}
	})
}

// "It is also an ErrTimeout if the wait exceeded MaxWait or the deadline of ctx", even if the store is silent.
func TestLocker_Acquire_deadline(t *testing.T) {
	for name, left := range map[string]time.Duration{"little": 50 * time.Millisecond, "enough for a request": 2 * time.Second} {
		for what, store := range map[string]lock.Backend{"held": lock.NewMemory(), "silent": silent{lock.NewMemory()}} {
			t.Run(name+" left, "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					locker := newLocker(t, store, lock.Options{})
					if what == "held" {
						mustAcquire(t, locker, "key")
					}
					ctx, cancel := context.WithTimeout(t.Context(), left)
					defer cancel()
					began := time.Now()
					_, err := locker.Acquire(ctx, "key")
					if !errors.Is(err, lock.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Acquire: %v, want ErrTimeout and DeadlineExceeded", err)
					}
					if took := time.Since(began); took != left {
						t.Errorf("Acquire took %v, want %v", took, left)
					}
				})
			})
		}
	}
}

// "A lease that the store may have granted is released in the background", even if the request reaches the store after its
// caller's deadline, and whether or not a further request fits into the caller's time.
func TestLocker_Acquire_lateRequest(t *testing.T) {
	for _, left := range []time.Duration{200 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second} {
		t.Run(left.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := lock.NewMemory()
				locker := newLocker(t, onItsWay{store, left + 300*time.Millisecond}, lock.Options{})
				ctx, cancel := context.WithTimeout(t.Context(), left)
				defer cancel()
				if _, err := locker.Acquire(ctx, "key"); !errors.Is(err, lock.ErrTimeout) {
					t.Errorf("Acquire: %v, want ErrTimeout", err)
				}
				time.Sleep(time.Second)
				if h, err := locker.Holder(t.Context(), "key"); err != nil || h.Owner != "" {
					t.Errorf("a second later: %+v, %v; want no holder", h, err)
				}
			})
		})
	}
}

// onItsWay is a Memory that acquisitions reach late, also those that are given up.
type onItsWay struct {
	*lock.Memory
	late time.Duration
}

func (b onItsWay) Acquire(ctx context.Context, c lock.Claim) (g lock.Grant, err error) {
	arrived := make(chan struct{})
	go func() {
		defer close(arrived)
		time.Sleep(b.late)
		g, err = b.Memory.Acquire(context.WithoutCancel(ctx), c)
	}()
	select {
	case <-arrived:
		return g, err
	case <-ctx.Done():
		return lock.Grant{}, ctx.Err()
	}
}

// silent is a Backend that answers no request but Close.
type silent struct{ lock.Backend }

func (silent) Acquire(ctx context.Context, _ lock.Claim) (lock.Grant, error) {
	<-ctx.Done()
	return lock.Grant{}, ctx.Err()
}

func (silent) Release(ctx context.Context, _ lock.Claim) error {
	<-ctx.Done()
	return ctx.Err()
}

// asking is a context that uses the Locker when it is asked for a value.
type asking struct {
	context.Context
	locker *lock.Locker
}

func (a asking) Value(key any) any {
	a.locker.Queued()
	return a.Context.Value(key)
}

// Queued returns "the number of callers of this process that wait in queues, for all keys together". Close "ends all waits,
// and ends all leases with the cause ErrClosed". It holds no mutex while code of a caller's context runs.
func TestLocker_Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := lock.New(lock.NewMemory(), lock.Options{})
		held := mustAcquire(t, locker, "one")
		mustAcquire(t, locker, "two")
		var waiting sync.WaitGroup
		for _, key := range []string{"one", "one", "two"} {
			waiting.Go(func() {
				_, err := locker.Acquire(asking{t.Context(), locker}, key)
				if !errors.Is(err, lock.ErrClosed) || !errors.Is(err, lock.ErrNotAcquired) {
					t.Errorf("Acquire: %v, want ErrClosed and ErrNotAcquired", err)
				}
			})
		}
		synctest.Wait()
		if n := locker.Queued(); n != 3 {
			t.Errorf("got %d in line, want 3", n)
		}
		if err := locker.Close(); err != nil {
			t.Fatal(err)
		}
		waiting.Wait()
		if n := locker.Queued(); n != 0 {
			t.Errorf("got %d in line after Close, want 0", n)
		}
		if cause := context.Cause(held.Context()); !errors.Is(cause, lock.ErrClosed) {
			t.Errorf("cause %v, want ErrClosed", cause)
		}
	})
}

// MaxQueue "is the number of callers of this process that may wait for one key".
func TestLocker_MaxQueue(t *testing.T) {
	locker := newLocker(t, lock.NewMemory(), lock.Options{MaxQueue: 1})
	lease := mustAcquire(t, locker, "key")
	var wg sync.WaitGroup
	results := make(chan error, 2)
	for range 2 {
		wg.Go(func() {
			next, err := locker.Acquire(t.Context(), "key")
			if err == nil {
				err = next.Release()
			}
			results <- err
		})
	}
	// One of the two waits and the other is refused, whichever came first.
	if err := <-results; !errors.Is(err, lock.ErrQueueFull) || !errors.Is(err, lock.ErrNotAcquired) {
		t.Errorf("Acquire: %v, want ErrQueueFull and ErrNotAcquired", err)
	}
	mustRelease(t, lease)
	if err := <-results; err != nil {
		t.Errorf("the one who waits: %v", err)
	}
	wg.Wait()
}

// slow is a Backend that releases nothing until it is open.
type slow struct {
	lock.Backend
	open chan struct{}
}

func (b slow) Release(ctx context.Context, c lock.Claim) error {
	<-b.open
	return b.Backend.Release(ctx, c)
}

// "Shutdown lets holders finish until its ctx ends, and then names the keys that are still held." It "ends all waits with
// ErrClosed, waits until each holder has released its lease", and "meanwhile it renews the leases".
func TestLocker_Shutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := lock.New(lock.NewMemory(), lock.Options{})
		lease := mustAcquire(t, locker, "key")
		answers := make(chan error, 2)
		go func() {
			_, err := locker.Acquire(t.Context(), "key")
			answers <- err
		}()
		synctest.Wait()
		down := make(chan error, 1)
		go func() { down <- locker.Shutdown(t.Context()) }()
		synctest.Wait()
		_, late := locker.Acquire(t.Context(), "another")
		answers <- late
		for range cap(answers) {
			if err := <-answers; !errors.Is(err, lock.ErrClosed) || !errors.Is(err, lock.ErrNotAcquired) {
				t.Errorf("Acquire: %v, want ErrClosed and ErrNotAcquired", err)
			}
		}
		time.Sleep(time.Hour)
		again, err := locker.Acquire(lease.Context(), "key")
		if err != nil {
			t.Fatalf("Acquire under the lease's context: %v", err)
		}
		mustRelease(t, again)
		if n := len(down); n != 0 {
			t.Fatal("Shutdown did not wait for the holder")
		}
		mustRelease(t, lease)
		if err := <-down; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		locker := lock.New(lock.NewMemory(), lock.Options{})
		lease := mustAcquire(t, locker, "a key")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := locker.Shutdown(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"a key"`) {
			t.Errorf("Shutdown: %v, want DeadlineExceeded and the key's name", err)
		}
		if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrClosed) {
			t.Errorf("cause %v, want ErrClosed", cause)
		}
	})
}

// Close "returns when all is done", even if several goroutines call it.
func TestLocker_CloseTwice(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	locker := lock.New(slow{lock.NewMemory(), open}, lock.Options{})
	mustAcquire(t, locker, "key")
	returned := make(chan error, 2)
	for range 2 {
		go func() { returned <- locker.Close() }()
	}
	time.Sleep(50 * time.Millisecond) // what is tested is that nothing happens
	if n := len(returned); n != 0 {
		t.Errorf("%d calls returned before the key was given back", n)
	}
	close(open)
	for range 2 {
		if err := <-returned; err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// Lease.Context: "If a holder has taken the key several times, the context of the first lease ends with the last [...]. All
// code under this context counts as the holder of the key".
func TestLocker_Acquire_againAfterTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t, lock.NewMemory(), lock.Options{})
		first := mustAcquire(t, locker, "key")
		under := func() *lock.Lease {
			t.Helper()
			lease, err := locker.TryAcquire(first.Context(), "key")
			if err != nil {
				t.Fatal(err)
			}
			return lease
		}
		second := under()
		mustRelease(t, first)
		third := under()
		mustRelease(t, second)
		mustRelease(t, third)
		if _, err := locker.TryAcquire(first.Context(), "key"); !errors.Is(err, lock.ErrReleased) {
			t.Errorf("got %v, want ErrReleased", err)
		}
	})
}

// "Afterwards, even if fn panics, Do releases the lease and all leases on the key that were taken under it", but no
// lease that its caller had before.
func TestLocker_Do_endsAllTakenUnderIt(t *testing.T) {
	store := lock.NewMemory()
	locker, other := newLocker(t, store, lock.Options{}), newLocker(t, store, lock.Options{})
	outer := mustAcquire(t, locker, "key")
	var forgotten *lock.Lease
	err := locker.Do(outer.Context(), "key", func(ctx context.Context, _ *lock.Lease) (err error) {
		forgotten, err = locker.Acquire(ctx, "key")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if cause := context.Cause(forgotten.Context()); !errors.Is(cause, lock.ErrReleased) {
		t.Errorf("cause %v, want ErrReleased", cause)
	}
	if outer.Remaining() == 0 {
		t.Error("Do ended a lease that its caller had before")
	}
	mustRelease(t, outer)
	mustRelease(t, mustAcquire(t, other, "key"))
}

// "A lease is renewed until all its contexts have ended", and once more, because a COMMIT may be in progress;
// with MaxHold, "a lease that was held for this long is not renewed any more, and so ends at most a TTL later".
func TestLocker_forgottenLease(t *testing.T) {
	const ttl = 3 * time.Second
	for name, c := range map[string]struct {
		options        lock.Options
		cancel         bool
		atLeast, until time.Duration
	}{
		"context ended":  {lock.Options{TTL: ttl}, true, ttl, 2 * ttl},
		"MaxHold":        {lock.Options{TTL: ttl, MaxHold: 10 * ttl}, false, 10 * ttl, 11 * ttl},
		"MaxHold unused": {lock.Options{TTL: ttl, MaxHold: 10 * ttl}, true, ttl, 2 * ttl},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := lock.NewMemory()
				locker, other := newLocker(t, store, c.options), newLocker(t, store, lock.Options{MaxWait: time.Hour})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if _, err := locker.Acquire(ctx, "key"); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if c.cancel {
					cancel()
				}
				mustAcquire(t, other, "key")
				if took := time.Since(began); took < c.atLeast || took > c.until {
					t.Errorf("the key was free after %v, want %v to %v", took, c.atLeast, c.until)
				}
			})
		})
	}
}

// A lease may be taken under a lease whose contexts have ended. It is renewed if its own context has not ended: "until all
// contexts under which it is held have ended".
func TestLocker_forgottenLease_takenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t, lock.NewMemory(), lock.Options{TTL: 3 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		first, err := locker.Acquire(ctx, "key")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(2500 * time.Millisecond) // renewed once, and not again
		second, err := locker.Acquire(context.WithoutCancel(first.Context()), "key")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if second.Remaining() == 0 {
			t.Errorf("the lease is over: %v", context.Cause(second.Context()))
		}
	})
}

// gathering is a Backend that answers acquisitions when n of them have come.
type gathering struct {
	lock.Backend
	all *sync.WaitGroup
}

func (g gathering) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	g.all.Done()
	g.all.Wait()
	return g.Backend.Acquire(ctx, c)
}

// "It asks for all keys at once." Leases.Fence "returns the fence of the lease on one of the keys".
func TestLocker_AcquireAll_atOnce(t *testing.T) {
	var all sync.WaitGroup
	all.Add(3)
	locker := newLocker(t, gathering{lock.NewMemory(), &all}, lock.Options{})
	leases, err := locker.AcquireAll(t.Context(), "b", "c", "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b", "c"} {
		if f := leases.Fence(key); f == 0 || f != leases.Lease(key).Fence() {
			t.Errorf("fence %d of %s", f, key)
		}
	}
	if f := leases.Fence("d"); f != 0 {
		t.Errorf("fence %d of a key that is not held", f)
	}
	again, err := locker.TryAcquire(leases.Context(), "a")
	if err != nil {
		t.Fatalf("a key of the leases, taken again: %v", err)
	}
	mustRelease(t, again)
	if err := leases.Release(); err != nil {
		t.Error(err)
	}
}

// "If some keys are held, AcquireAll keeps the leases of the keys that sort before the first held key, and releases the
// others."
func TestLocker_AcquireAll_held(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lock.NewMemory()
		locker, other := newLocker(t, store, lock.Options{}), newLocker(t, store, lock.Options{})
		held := mustAcquire(t, other, "b")
		got := make(chan *lock.Leases)
		go func() {
			leases, err := locker.AcquireAll(t.Context(), "a", "b", "c")
			if err != nil {
				t.Error(err)
			}
			got <- leases
		}()
		synctest.Wait()
		if _, err := other.TryAcquire(t.Context(), "a"); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("the key before the held one: %v, want ErrHeld", err)
		}
		after, err := other.TryAcquire(t.Context(), "c")
		if err != nil {
			t.Fatalf("the key after the held one: %v", err)
		}
		mustRelease(t, after)
		mustRelease(t, held)
		leases := <-got
		for _, key := range []string{"a", "b", "c"} {
			if leases.Lease(key).Remaining() == 0 {
				t.Errorf("%s is not held", key)
			}
		}
		if err := leases.Release(); err != nil {
			t.Error(err)
		}
	})
}

// heldLast answers a request for b when the other requests have been answered. Answered first, a held key would end the
// requests for the keys after it, so that there would be nothing to give back.
type heldLast struct{ lock.Backend }

func (h heldLast) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	if c.Key == "b" {
		synctest.Wait()
	}
	return h.Backend.Acquire(ctx, c)
}

// "All or none": an AcquireAll that fails keeps no key.
func TestLocker_AcquireAll_none(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lock.NewMemory()
		other := newLocker(t, store, lock.Options{})
		mustAcquire(t, other, "b")
		locker := newLocker(t, heldLast{store}, lock.Options{MaxWait: 200 * time.Millisecond})
		if _, err := locker.AcquireAll(t.Context(), "a", "b", "c"); !errors.Is(err, lock.ErrTimeout) {
			t.Errorf("got %v, want ErrTimeout", err)
		}
		for _, key := range []string{"a", "c"} {
			if _, err := other.TryAcquire(t.Context(), key); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
	})
}

// AcquireWith "waits for the lease of a key, as Acquire does, and then takes the leases of those other keys that are free";
// "it holds no key while it waits for another".
func TestLocker_AcquireWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lock.NewMemory()
		locker, other := newLocker(t, store, lock.Options{}), newLocker(t, store, lock.Options{})
		first, held := mustAcquire(t, other, "b"), mustAcquire(t, other, "c")
		got := make(chan *lock.Leases)
		go func() {
			leases, err := locker.AcquireWith(t.Context(), "b", "a", "c", "b", "a")
			if err != nil {
				t.Error(err)
			}
			got <- leases
		}()
		synctest.Wait()
		mustRelease(t, mustAcquire(t, other, "a"))
		mustRelease(t, first)
		leases := <-got
		for key, want := range map[string]bool{"a": true, "b": true, "c": false} {
			if is := leases.Fence(key) > 0; is != want {
				t.Errorf("%s is held: %v, want %v", key, is, want)
			}
		}
		if err := leases.Release(); err != nil {
			t.Error(err)
		}
		mustRelease(t, held)
		for _, key := range []string{"a", "b", "c"} {
			mustRelease(t, mustAcquire(t, other, key))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := locker.AcquireWith(ctx, "a", "b"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want Canceled", err)
		}
	})
}

// New panics if an option cannot work, and names it.
func TestNew_Options(t *testing.T) {
	for name, o := range map[string]lock.Options{
		"TTL":      {TTL: time.Millisecond},
		"year":     {TTL: math.MaxInt64 / 1e6 * 1e6},
		"MaxHold":  {MaxHold: -1},
		"whole":    {TTL: time.Second + time.Microsecond},
		"Margin":   {TTL: time.Second, Margin: 600 * time.Millisecond},
		"MaxQueue": {MaxQueue: -1},
		"Identity": {Identity: "two words"},
	} {
		func() {
			defer func() {
				if err := fmt.Sprint(recover()); !strings.Contains(err, name) {
					t.Errorf("%s: got %v, want an error that names it", name, err)
				}
			}()
			lock.New(lock.NewMemory(), o)
		}()
	}
}

// "The ctx given to fn is the lease's. It ends with a cause the moment the lease can no longer be trusted". "An ErrLost
// does not mean that fn's work was undone": Do returns it even if fn has returned nil.
func TestLocker_Do_lost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t, lock.NewMemory(), lock.Options{})
		err := locker.Do(t.Context(), "key", func(ctx context.Context, _ *lock.Lease) error {
			if _, err := locker.ForceRelease(ctx, "key"); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, lock.ErrLost) {
				t.Errorf("cause %v, want ErrLost", cause)
			}
			return nil
		})
		if !errors.Is(err, lock.ErrLost) {
			t.Errorf("Do: %v, want ErrLost", err)
		}
	})
}

// "A panic of the function given to Do blocks no key."
func TestLocker_Panics(t *testing.T) {
	locker := newLocker(t, lock.NewMemory(), lock.Options{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nothing panicked")
			}
		}()
		_ = locker.Do(t.Context(), "key", func(context.Context, *lock.Lease) error { panic("fn") })
	}()
	lease, err := locker.TryAcquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, lease)
}

func TestMemory(t *testing.T) {
	t.Parallel()
	locktest.Run(t, func(*testing.T) locktest.Harness {
		store := lock.NewMemory()
		return locktest.Harness{
			Connect:  func(testing.TB) lock.Backend { return store },
			Expires:  true,
			Notifies: true,
			Fences:   true,
		}
	})
}

// "Context [...] ends when the lease ends", also if an inner lease's Context is no child of the outer lease's Context.
func TestLease_detachedContext(t *testing.T) {
	locker := newLocker(t, lock.NewMemory(), lock.Options{})
	outer := mustAcquire(t, locker, "key")
	inner, err := locker.Acquire(context.WithoutCancel(outer.Context()), "key")
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, outer)
	mustRelease(t, inner)
	for _, lease := range []*lock.Lease{outer, inner} {
		if err := context.Cause(lease.Context()); !errors.Is(err, lock.ErrReleased) {
			t.Errorf("got %v, want ErrReleased", err)
		}
	}
}

// "If the store fails, releases are repeated, one key at a time": by one goroutine, not by one for each failed call.
func TestLocker_FailingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := locktest.NewTap(lock.NewMemory())
		locker := newLocker(t, tap, lock.Options{})
		tap.Cut()
		const calls = 1000
		for range calls {
			if _, err := locker.TryAcquire(t.Context(), "key"); err == nil {
				t.Fatal("acquired through a cut tap")
			}
		}
		synctest.Wait()
		if n := runtime.NumGoroutine(); n > 50 {
			t.Errorf("%d goroutines after %d failed calls", n, calls)
		}
		before := tap.Count(locktest.Release)
		time.Sleep(5 * time.Second)
		if n := tap.Count(locktest.Release) - before; n > 20 {
			t.Errorf("%d requests in 5 s to a store that fails", n)
		}
	})
}

// An Observer is told when a caller waited, and when a lease was contended, released or lost.
func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		told := map[string]int{}
		note := func(event string) {
			mu.Lock()
			defer mu.Unlock()
			told[event]++
		}
		tap := locktest.NewTap(lock.NewMemory())
		locker := newLocker(t, tap, lock.Options{Observer: lock.Observer{
			Waited:    func(_ string, _ time.Duration, err error) { note(fmt.Sprint("waited, acquired ", err == nil)) },
			Contended: func(string) { note("contended") },
			Held:      func(string, time.Duration) { note("held") },
			Lost:      func(_ string, cause error) { note(fmt.Sprint("lost ", errors.Is(cause, lock.ErrLost))) },
		}})
		held := mustAcquire(t, newLocker(t, tap, lock.Options{}), "key")
		leases := make(chan *lock.Lease, 2)
		for range 2 {
			go func() { leases <- mustAcquire(t, locker, "key") }()
			synctest.Wait()
		}
		mustRelease(t, held)
		mustRelease(t, <-leases)
		mustRelease(t, <-leases)
		mustAcquire(t, locker, "lost")
		tap.Cut()
		time.Sleep(time.Minute)
		if _, err := locker.TryAcquire(t.Context(), "lost"); err == nil {
			t.Fatal("acquired through a cut tap")
		}
		mu.Lock()
		defer mu.Unlock()
		want := map[string]int{
			"waited, acquired true": 3, "waited, acquired false": 1, "contended": 1, "held": 2, "lost true": 1,
		}
		if !maps.Equal(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
	})
}

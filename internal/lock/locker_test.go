package lock_test

import (
	"context"
	"errors"
	"fmt"
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

// MaxWait "bounds the wait for a key, beside the caller's context".
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

// "It is also an ErrTimeout if the time was over, whether MaxWait or the deadline of ctx has set it", also where the
// store is silent.
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

// "What the store may have granted is given back in the background", also where the request reaches the store late, after its
// caller's deadline, whether a request of its own fits into the caller's time or not.
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

// Queued is "how many callers of this process wait in queues, for all keys together".
func TestLocker_Queued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := lock.New(lock.NewMemory(), lock.Options{})
		for _, key := range []string{"one", "two"} {
			mustAcquire(t, locker, key)
		}
		var waiting sync.WaitGroup
		for _, key := range []string{"one", "one", "two"} {
			waiting.Go(func() {
				if _, err := locker.Acquire(t.Context(), key); !errors.Is(err, lock.ErrClosed) {
					t.Errorf("Acquire: %v, want ErrClosed", err)
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
	})
}

// MaxQueue "is how many callers of this process may wait for one key".
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

// "An ErrLost does not mean that fn's work was undone": Do returns it also after fn returned nil.
func TestLocker_DoLost(t *testing.T) {
	t.Parallel()
	lost := make(chan struct{})
	locker := newLocker(t, teller{lock.NewMemory(), lost}, lock.Options{})
	committed := false
	err := locker.Do(t.Context(), "key", func(ctx context.Context, _ *lock.Lease) error {
		committed = true
		close(lost)
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, lock.ErrLost) || !committed {
		t.Errorf("committed %t and %v, want true and ErrLost", committed, err)
	}
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

// Close "returns when that is done", whoever calls it.
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

// asking is a context that uses the Locker when it is asked for a value.
type asking struct {
	context.Context
	locker *lock.Locker
}

func (a asking) Value(key any) any {
	a.locker.Queued()
	return a.Context.Value(key)
}

// Shutdown "ends all waiting with ErrClosed, waits until each lease is released by its holder [...] Meanwhile leases are
// renewed", and can be taken again under their contexts. It holds no lock while code of a context runs.
func TestLocker_Shutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := lock.New(lock.NewMemory(), lock.Options{})
		lease := mustAcquire(t, locker, "key")
		answers := make(chan error, 2)
		go func() {
			_, err := locker.Acquire(asking{t.Context(), locker}, "key")
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
		if err := locker.Shutdown(t.Context()); err != nil {
			t.Errorf("second Shutdown: %v", err)
		}
	})
}

// "If ctx ends first, Shutdown ends the leases that are left." "The error is then ctx's."
func TestLocker_Shutdown_cutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := lock.New(lock.NewMemory(), lock.Options{})
		lease := mustAcquire(t, locker, "key")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := locker.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v, want DeadlineExceeded", err)
		}
		if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrClosed) {
			t.Errorf("cause %v, want ErrClosed", cause)
		}
	})
}

// "Shutdown ends the leases that are left, and returns when their keys are given back, at most a quarter of a second later. The
// error is then ctx's, and names the keys."
func TestLocker_Shutdown_silentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := lock.New(mute{lock.NewMemory()}, lock.Options{TTL: time.Minute})
		mustAcquire(t, locker, "a key")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := locker.Shutdown(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"a key"`) {
			t.Errorf("Shutdown: %v, want DeadlineExceeded and the key's name", err)
		}
		if took := time.Since(began); took > 1250*time.Millisecond {
			t.Errorf("Shutdown took %v", took)
		}
		_ = locker.Close() // ends when the request has timed out
	})
}

// mute is a Backend that answers no release.
type mute struct{ lock.Backend }

func (m mute) Release(ctx context.Context, c lock.Claim) error { return silent(m).Release(ctx, c) }

// WithTTL "shares all else with l: queues, leases and Close. Margin keeps its share of the TTL"; and "a lease that is
// taken under another one on the same key has that one's TTL".
func TestLocker_WithTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t, lock.NewMemory(), lock.Options{TTL: 10 * time.Second, Margin: 2 * time.Second})
		brief := locker.WithTTL(time.Second)
		left := func(e *lock.Lease, want time.Duration) {
			t.Helper()
			if got := e.Remaining(); got != want {
				t.Errorf("%v remain, want %v", got, want)
			}
		}
		lease := mustAcquire(t, brief, "key")
		left(lease, 800*time.Millisecond)
		again, err := locker.Acquire(lease.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		left(again, 800*time.Millisecond)
		mustRelease(t, again)
		next := make(chan *lock.Lease, 1)
		go func() { next <- mustAcquire(t, locker, "key") }()
		synctest.Wait()
		if n := brief.Queued(); n != 1 {
			t.Errorf("%d wait, want 1", n)
		}
		time.Sleep(time.Millisecond) // or there would be no number for a hand-off
		mustRelease(t, lease)
		left(<-next, 8*time.Second)
	})
}

// Lease.Context: "of the first lease of a holder that has taken the key several times, [it ends] when the last does [...]. All
// that runs under this context counts as the holder of the key".
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

// "Do [...] releases it afterwards, also if fn panics, together with all leases on the key that were taken under it", and
// none that its caller had before.
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

// "A lease is renewed for as long as one of its contexts has not ended", and once more, since a COMMIT may be under way;
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

// A lease that is taken under one whose contexts have ended is renewed if its own context has not: "while one of the contexts
// under which it is held has not ended".
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

// "All keys are asked for at once." Leases.Fence "returns the fence of the lease on one of the keys".
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

// "If some are held, those before the first held one, in sorted order, are kept, the others given back".
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

// late is a Backend whose grants come too late for a short TTL.
type late struct{ lock.Backend }

func (b late) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	time.Sleep(900 * time.Millisecond)
	return b.Backend.Acquire(ctx, c)
}

// The same while no answer comes in time.
func TestLocker_MaxWaitLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t, late{lock.NewMemory()}, lock.Options{TTL: 300 * time.Millisecond, MaxWait: 2 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := locker.Acquire(ctx, "key"); !errors.Is(err, lock.ErrTimeout) {
			t.Errorf("got %v, want ErrTimeout", err)
		}
	})
}

// WithMaxWait is "for calls that may wait for another time".
func TestLocker_WithMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t, lock.NewMemory(), lock.Options{MaxWait: time.Hour})
		mustAcquire(t, locker, "key")
		began := time.Now()
		if _, err := locker.WithMaxWait(time.Minute).Acquire(t.Context(), "key"); !errors.Is(err, lock.ErrTimeout) {
			t.Errorf("Acquire: %v, want ErrTimeout", err)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("waited %v, want a minute", took)
		}
	})
}

// "The error is errors.ErrUnsupported if the Backend is no Inspector."
func TestLocker_Holder_unsupported(t *testing.T) {
	locker := newLocker(t, slow{Backend: lock.NewMemory()}, lock.Options{})
	if h, err := locker.Holder(t.Context(), "key"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Holder: %+v, %v", h, err)
	}
	if h, err := newLocker(t, lock.NewMemory(), lock.Options{}).ForceRelease(t.Context(), ""); !errors.Is(err, lock.ErrKey) {
		t.Errorf("ForceRelease: %+v, %v; want ErrKey", h, err)
	}
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

// teller is a Backend that notices by itself when a lease is gone.
type teller struct {
	lock.Backend
	lost chan struct{}
}

func (b teller) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	g, err := b.Backend.Acquire(ctx, c)
	g.Lost = b.lost
	return g, err
}

// "Lost is closed when the store reports by itself that the granted lease is gone."
func TestLocker_StoreTellsLoss(t *testing.T) {
	t.Parallel()
	lost := make(chan struct{})
	locker := lock.New(teller{lock.NewMemory(), lost}, lock.Options{TTL: time.Hour})
	defer locker.Close()
	lease := mustAcquire(t, locker, "k")
	released, err := locker.Acquire(t.Context(), "another") // what watches it also ends
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, released)
	close(lost)
	<-lease.Context().Done()
	if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("cause %v, want ErrLost", cause)
	}
	if err := lease.Release(); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want ErrLost", err)
	}
}

func TestMemory(t *testing.T) {
	locktest.Run(t, func(*testing.T) locktest.Harness {
		store := lock.NewMemory()
		return locktest.Harness{
			Connect:  func(testing.TB) lock.Backend { return store },
			Expires:  true,
			Notifies: true,
			Fences:   true,
			Raises:   true,
		}
	})
}

// panicky returns an Observer that panics in one of its functions.
func panicky(in string) lock.Observer {
	event := func(name string) {
		if in == name {
			panic(name)
		}
	}
	return lock.Observer{
		Waited:     func(string, time.Duration, error) { event("Waited") },
		Contended:  func(string) { event("Contended") },
		Held:       func(string, time.Duration) { event("Held") },
		HandedOver: func(string) { event("HandedOver") },
	}
}

// panickyContext panics when its end is asked for, once it is armed.
type panickyContext struct {
	context.Context
	armed bool
}

func (p *panickyContext) Err() error {
	if p.armed {
		panic("Err")
	}
	return p.Context.Err()
}

// "A panic of the Observer, of a context or of the function given to Do blocks no key."
func TestLocker_Panics(t *testing.T) {
	for _, in := range []string{"Waited", "Contended", "Held", "HandedOver", "fn", "context"} {
		t.Run(in, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := lock.NewMemory()
				locker := newLocker(t, store, lock.Options{HandoffTime: time.Hour, Observer: panicky(in)})
				other := newLocker(t, store, lock.Options{})
				held := mustAcquire(t, other, "key")
				ctx := &panickyContext{Context: t.Context()}
				done := make(chan any, 2)
				for range 2 { // the second is handed the key, or asks after the first
					go func() {
						defer func() { done <- recover() }()
						_ = locker.Do(ctx, "key", func(context.Context, *lock.Lease) error {
							time.Sleep(time.Millisecond)
							if in == "fn" {
								panic(in)
							}
							return nil
						})
					}()
				}
				synctest.Wait()
				ctx.armed = in == "context"
				mustRelease(t, held)
				panicked := false
				for range 2 {
					if v := <-done; v != nil {
						panicked = true
					}
				}
				if !panicked {
					t.Error("nothing panicked")
				}
				next := mustAcquire(t, other, "key")
				mustRelease(t, next)
				if n := locker.Queued(); n != 0 {
					t.Errorf("%d callers wait", n)
				}
			})
		})
	}
}

// doneUntil is a context whose end can be asked for until it is armed: then it panics.
type doneUntil struct {
	context.Context
	armed bool
}

func (d *doneUntil) Done() <-chan struct{} {
	if d.armed {
		panic("Done")
	}
	return d.Context.Done()
}

// The same for a key that Do holds, and that is taken again under a context that panics.
func TestLocker_PanicsInside(t *testing.T) {
	store := lock.NewMemory()
	locker, other := newLocker(t, store, lock.Options{}), newLocker(t, store, lock.Options{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nothing panicked")
			}
		}()
		_ = locker.Do(t.Context(), "key", func(ctx context.Context, _ *lock.Lease) error {
			inner := &doneUntil{Context: ctx}
			if _, err := locker.Acquire(inner, "key"); err != nil {
				t.Error(err)
			}
			inner.armed = true
			return nil
		})
	}()
	lease, err := other.TryAcquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, lease)
}

// The same for several keys: one that AcquireAll has already is free after a panic at the next one, and a panic of a release
// reaches the caller.
func TestLeases_Panics(t *testing.T) {
	for _, in := range []string{"Contended", "Held"} {
		t.Run(in, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := lock.NewMemory()
				locker := newLocker(t, store, lock.Options{Observer: panicky(in)})
				other := newLocker(t, store, lock.Options{})
				held := mustAcquire(t, other, "key")
				done := make(chan any)
				go func() {
					defer func() { done <- recover() }()
					if leases, err := locker.AcquireAll(t.Context(), "a", "key"); err == nil {
						_ = leases.Release()
					}
				}()
				synctest.Wait()
				mustRelease(t, held)
				if v := <-done; v != in {
					t.Errorf("recovered %v, want %s", v, in)
				}
				for _, key := range []string{"a", "key"} {
					lease, err := other.TryAcquire(t.Context(), key)
					if err != nil {
						t.Fatal(err)
					}
					mustRelease(t, lease)
				}
			})
		})
	}
}

// deadlinePanics is a context that panics when its deadline is asked for.
type deadlinePanics struct{ context.Context }

func (deadlinePanics) Deadline() (time.Time, bool) { panic("Deadline") }

// The same for a caller in the queue.
func TestLocker_PanicsInQueue(t *testing.T) {
	locker := newLocker(t, lock.NewMemory(), lock.Options{})
	held := mustAcquire(t, locker, "key")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nothing panicked")
			}
		}()
		_, _ = locker.Acquire(deadlinePanics{t.Context()}, "key")
	}()
	if n := locker.Queued(); n != 0 {
		t.Errorf("%d callers wait", n)
	}
	mustRelease(t, held)
	mustRelease(t, mustAcquire(t, locker, "key"))
}

// "Context [...] ends when the lease ends", also that of an inner lease that is no child of the outer one's.
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

// A store that refuses every request is asked to take back what it may have granted by one goroutine, not by one for
// each failed call; when it is back, the key is free at once.
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

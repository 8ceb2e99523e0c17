package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
		if _, err := locker.Acquire(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		_, err := locker.Acquire(t.Context(), "key")
		if !errors.Is(err, lock.ErrTimeout) || !errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("Acquire: %v, want ErrTimeout and ErrNotAcquired", err)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire: %v blames the caller's context", err)
		}
	})
}

// Queued is "how many callers of this process stand in line, for all keys
// together".
func TestLocker_Queued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := lock.New(lock.NewMemory(), lock.Options{})
		for _, key := range []string{"one", "two"} {
			if _, err := locker.Acquire(t.Context(), key); err != nil {
				t.Fatal(err)
			}
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
	lease, err := locker.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
	if err := <-results; err != nil {
		t.Errorf("the one who waits: %v", err)
	}
	wg.Wait()
}

// Do releases the lease "also if fn panics".
func TestLocker_DoPanics(t *testing.T) {
	locker := newLocker(t, lock.NewMemory(), lock.Options{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = locker.Do(t.Context(), "key", func(context.Context, *lock.Lease) error { panic("in fn") })
	}()
	if _, err := locker.TryAcquire(t.Context(), "key"); err != nil {
		t.Errorf("after the panic: %v", err)
	}
}

// Do returns fn's error as it is.
func TestLocker_DoError(t *testing.T) {
	locker := newLocker(t, lock.NewMemory(), lock.Options{})
	want := errors.New("sold out")
	err := locker.Do(t.Context(), "key", func(context.Context, *lock.Lease) error { return want })
	if err != want { //nolint:errorlint // as it is
		t.Errorf("got %v, want %v", err, want)
	}
}

// "An ErrLost does not mean that fn's work was undone": Do returns it also after
// fn returned nil.
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

// AcquireAll takes MaxKeys keys and no more. "Duplicates count once."
func TestLocker_AcquireAll_MaxKeys(t *testing.T) {
	t.Parallel()
	locker := newLocker(t, lock.NewMemory(), lock.Options{})
	keys := make([]string, lock.MaxKeys)
	for i := range keys {
		keys[i] = fmt.Sprint("key", i)
	}
	all, err := locker.AcquireAll(t.Context(), slices.Concat(keys, keys)...)
	if err != nil {
		t.Fatalf("AcquireAll of %d keys, each twice: %v", len(keys), err)
	}
	if err := all.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
	if _, err := locker.AcquireAll(t.Context(), append(keys, "one more")...); !errors.Is(err, lock.ErrKey) {
		t.Errorf("AcquireAll of %d keys: %v, want ErrKey", len(keys)+1, err)
	}
}

// Close "returns when that is done", whoever calls it.
func TestLocker_CloseTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tap := locktest.NewTap(lock.NewMemory())
		locker := lock.New(tap, lock.Options{})
		if _, err := locker.Acquire(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		tap.HoldRequests(locktest.Release)
		var returned atomic.Int32
		for range 2 {
			go func() {
				if err := locker.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				returned.Add(1)
			}()
		}
		synctest.Wait()
		if n := returned.Load(); n != 0 {
			t.Errorf("%d calls returned before the key was given back", n)
		}
		tap.Open()
		synctest.Wait()
		if n := returned.Load(); n != 2 {
			t.Errorf("%d of 2 calls returned", n)
		}
	})
}

// "Validate reports the first option that cannot work, by name. New panics with
// what Validate returns".
func TestOptions_Validate(t *testing.T) {
	for name, o := range map[string]lock.Options{
		"TTL":         {TTL: time.Millisecond},
		"whole":       {TTL: time.Second + time.Microsecond},
		"Margin":      {TTL: time.Second, Margin: 600 * time.Millisecond},
		"MaxHold":     {MaxHold: -1},
		"MaxQueue":    {MaxQueue: -1},
		"MaxHandoffs": {MaxHandoffs: 1 << 16},
		"HandoffTime": {HandoffTime: -1},
	} {
		err := o.Validate()
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want an error that names it", name, err)
			continue
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: New accepts it", name)
				}
			}()
			lock.New(lock.NewMemory(), o)
		}()
	}
	if err := (lock.Options{}).Validate(); err != nil {
		t.Errorf("zero value: %v", err)
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

// "A lease ends as soon as a store that notices by itself tells that it is gone."
func TestLocker_StoreTellsLoss(t *testing.T) {
	t.Parallel()
	lost := make(chan struct{})
	locker := lock.New(teller{lock.NewMemory(), lost}, lock.Options{TTL: time.Hour})
	defer locker.Close()
	lease, err := locker.Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	released, err := locker.Acquire(t.Context(), "another") // what watches it ends, too
	if err != nil {
		t.Fatal(err)
	}
	if err := released.Release(); err != nil {
		t.Fatal(err)
	}
	close(lost)
	<-lease.Context().Done()
	if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("cause %v, want ErrLost", cause)
	}
	if err := lease.Release(); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want ErrLost", err)
	}
}

package zklock_test

import (
	"context"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
)

// BenchmarkPair is acquire and release of a key that nobody else wants.
func BenchmarkPair(b *testing.B) {
	locker := newLocker(b, connect(b, testserver.ZooKeeper(b), zklock.Options{Root: newRoot()}), lock.Options{})
	warmUp(b, locker, "key")
	for b.Loop() {
		lease, err := locker.Acquire(b.Context(), "key")
		if err != nil {
			b.Fatal(err)
		}
		if err := lease.Release(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRenew is what each held key costs every third of its TTL.
func BenchmarkRenew(b *testing.B) {
	backend := connect(b, testserver.ZooKeeper(b), zklock.Options{Root: newRoot()})
	c := lock.Claim{Key: "key", Owner: "me", TTL: 10 * time.Second}
	if _, err := backend.Acquire(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := backend.Renew(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProcesses is a turn on one key that four processes want all the time,
// with as many goroutines in each as are named.
func BenchmarkProcesses(b *testing.B) {
	for name, goroutines := range map[string]int{"4x1": 1, "4x16": 16} {
		b.Run(name, func(b *testing.B) {
			addr, root := testserver.ZooKeeper(b), newRoot()
			var turns int // guarded by the lock
			done := make(chan error, 4*goroutines)
			b.ResetTimer()
			for range 4 {
				locker := newLocker(b, connect(b, addr, zklock.Options{Root: root}), lock.Options{})
				for range goroutines {
					go func() {
						for over := false; !over; {
							err := locker.Do(b.Context(), "key", func(context.Context, *lock.Lease) error {
								turns++
								over = turns > b.N
								return nil
							})
							if err != nil {
								done <- err
								return
							}
						}
						done <- nil
					}()
				}
			}
			for range 4 * goroutines {
				if err := <-done; err != nil {
					b.Error(err)
				}
			}
		})
	}
}

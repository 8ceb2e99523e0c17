package lock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
)

// A turn is an acquisition and its release. One hot key is the case that the
// line inside the process is for.
func BenchmarkLocker(b *testing.B) {
	backends := map[string]func(b *testing.B) lock.Backend{
		"memory": func(*testing.B) lock.Backend { return lock.NewMemory() },
		"redis":  func(b *testing.B) lock.Backend { return lock.NewRedis(connect(b, testserver.Redis(b))) },
	}
	for name, backend := range backends {
		b.Run(name+"/one goroutine", func(b *testing.B) {
			locker := newLocker(b, backend(b), lock.Options{})
			b.ReportAllocs()
			for b.Loop() {
				turn(b, locker, b.Name())
			}
		})
		for _, keys := range []int64{64, 1} {
			b.Run(fmt.Sprintf("%s/64 goroutines, %d keys", name, keys), func(b *testing.B) {
				locker := newLocker(b, backend(b), lock.Options{})
				b.ReportAllocs()
				b.SetParallelism(32) // times GOMAXPROCS
				var next atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					key := fmt.Sprint(b.Name(), next.Add(1)%keys)
					for pb.Next() {
						turn(b, locker, key)
					}
				})
			})
		}
	}
}

func turn(b *testing.B, l *lock.Locker, key string) {
	err := l.Do(context.Background(), key, func(context.Context, *lock.Lease) error { return nil })
	if err != nil {
		b.Error(err)
	}
}

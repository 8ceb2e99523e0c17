package mysqllock_test

import (
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/mysqllock"
	"example.com/shop/internal/lock/testserver"
)

// A pair is one acquisition and one release of a free key.
func BenchmarkPair(b *testing.B) {
	for name, server := range map[string]func(testing.TB) string{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB} {
		for _, protocol := range []string{"false", "true"} {
			b.Run(name+"/interpolateParams="+protocol, func(b *testing.B) {
				backend := newBackend(b, open(b, with(b, server(b), "interpolateParams", protocol)), mysqllock.Options{})
				locker := lock.New(backend, lock.Options{})
				defer func() { _ = locker.Close() }()
				for b.Loop() {
					lease, err := locker.Acquire(b.Context(), "key")
					if err != nil {
						b.Fatal(err)
					}
					if err := lease.Release(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// How long after a release by another process a waiter has the key that it has
// waited for so long.
func BenchmarkWake(b *testing.B) {
	dsn := with(b, testserver.MySQL(b), "interpolateParams", "true")
	newBackend(b, open(b, dsn), mysqllock.Options{})
	for _, waited := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, time.Second} {
		b.Run(waited.String(), func(b *testing.B) {
			one := lock.New(mysqllock.New(open(b, dsn), mysqllock.Options{}), lock.Options{})
			two := lock.New(mysqllock.New(open(b, dsn), mysqllock.Options{}), lock.Options{})
			defer func() { _, _ = one.Close(), two.Close() }()
			var total time.Duration
			for b.Loop() {
				lease, err := one.Acquire(b.Context(), "key")
				if err != nil {
					b.Fatal(err)
				}
				had := make(chan time.Time, 1)
				go func() {
					next, err := two.Acquire(b.Context(), "key")
					had <- time.Now()
					if err == nil {
						err = next.Release()
					}
					if err != nil {
						b.Error(err)
					}
				}()
				time.Sleep(waited)
				began := time.Now()
				if err := lease.Release(); err != nil {
					b.Fatal(err)
				}
				total += (<-had).Sub(began)
			}
			b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms/wake")
		})
	}
}

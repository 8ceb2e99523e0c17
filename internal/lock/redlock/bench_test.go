package redlock_test

import (
	"testing"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/redlock"
	"example.com/shop/internal/lock/testserver"
)

// A pair is one acquisition and one release of a free key on five nodes, all
// there or two of them frozen.
func BenchmarkPair(b *testing.B) {
	var servers []*testserver.Server
	var nodes []string
	for range 5 {
		s := testserver.StartRedis(b)
		servers, nodes = append(servers, s), append(nodes, s.Addr())
	}
	for _, frozen := range []int{0, 2} {
		for _, s := range servers[:frozen] {
			s.Pause(b)
		}
		b.Run(map[int]string{0: "five answer", 2: "three answer"}[frozen], func(b *testing.B) {
			clients, _ := connect(b, nodes)
			locker := lock.New(redlock.New(clients, redlock.Options{}), lock.Options{})
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

package e2e_test

import (
	"sync"
	"time"
)

// patience is for what takes milliseconds, on a machine that has better to do.
const patience = 30 * time.Second

// atOnce calls f for 0 to n-1, all at the same moment, and returns what they did.
func atOnce[T any](n int, f func(i int) T) []T {
	done, start := make([]T, n), make(chan struct{})
	var all sync.WaitGroup
	for i := range done {
		all.Go(func() {
			<-start
			done[i] = f(i)
		})
	}
	close(start)
	all.Wait()
	return done
}

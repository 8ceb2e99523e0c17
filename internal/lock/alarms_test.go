package lock

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// "An alarm calls wake at its time, in a goroutine of its own, unless it was
// cleared before", and one timer serves all, in whatever order they are set.
func TestAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			all  alarms
			mu   sync.Mutex
			rung []int
			at   []time.Duration
		)
		began := time.Now()
		after := func(n int) (*alarm, time.Time) {
			return &alarm{wake: func() {
				mu.Lock()
				defer mu.Unlock()
				rung, at = append(rung, n), append(at, time.Since(began))
			}}, began.Add(time.Duration(n) * time.Second)
		}
		for _, n := range []int{5, 3, 9, 1, 7, 3} {
			all.set(after(n))
		}
		gone, due := after(4)
		all.set(gone, due)
		all.clear(gone)
		all.clear(gone) // again: nothing to do
		moved, _ := after(8)
		all.set(moved, began.Add(time.Second))
		all.set(moved, began.Add(8*time.Second))

		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []int{1, 3, 3, 5, 7, 8, 9}; !slices.Equal(rung, want) {
			t.Errorf("rung: %v, want %v", rung, want)
		}
		for i, n := range rung {
			if at[i] != time.Duration(n)*time.Second {
				t.Errorf("alarm of %ds rang after %v", n, at[i])
			}
		}

		all.set(gone, time.Now().Add(time.Second)) // the timer has run out meanwhile
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if rung[len(rung)-1] != 4 {
			t.Error("an alarm that was cleared once does not ring when it is set again")
		}

		late, _ := after(99)
		all.set(late, time.Now().Add(time.Second))
		all.stop()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if rung[len(rung)-1] == 99 {
			t.Error("an alarm rang after stop")
		}
	})
}

package measure

import (
	"context"
	"time"
)

// SleepLoop returns how many pauses of the length one goroutine gets done per
// second: the ideal for a lock that is held for so long each time, given that
// timers fire late.
func SleepLoop(ctx context.Context, pause, total time.Duration) float64 {
	began, n := time.Now(), 0
	for ctx.Err() == nil && time.Since(began) < total {
		time.Sleep(pause)
		n++
	}
	return float64(n) / time.Since(began).Seconds()
}

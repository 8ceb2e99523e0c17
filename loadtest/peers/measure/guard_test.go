package measure

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestGuard(t *testing.T) {
	for _, c := range []struct {
		name   string
		slots  int // of a lock made of a channel, which a bubble's clock understands
		broken bool
	}{
		{"a lock for two", 2, true},
		{"a lock", 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g Guard
				slots := make(chan struct{}, c.slots)
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						slots <- struct{}{}
						defer func() { <-slots }()
						g.Pass(time.Millisecond)
					})
				}
				all.Wait()
				overlaps, lost := g.Broken()
				if got := overlaps > 0; got != c.broken {
					t.Errorf("overlaps: got %d, want some: %v", overlaps, c.broken)
				}
				if got := lost > 0; got != c.broken {
					t.Errorf("lost updates: got %d, want some: %v", lost, c.broken)
				}
			})
		})
	}
}

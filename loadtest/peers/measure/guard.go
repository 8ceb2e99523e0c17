package measure

import (
	"sync/atomic"
	"time"
)

// Guard is what a lock protects, and finds out whether it does. It is safe to be
// used without a lock; it is then Broken.
type Guard struct {
	inside   atomic.Int32
	overlaps atomic.Int64
	count    atomic.Int64 // read, then written: right only under a lock
	passes   atomic.Int64
}

// Pass is the work under the lock. It takes as long as hold says.
func (g *Guard) Pass(hold time.Duration) {
	if g.inside.Add(1) != 1 {
		g.overlaps.Add(1)
	}
	seen := g.count.Load()
	if hold > 0 {
		time.Sleep(hold)
	}
	g.count.Store(seen + 1)
	g.inside.Add(-1)
	g.passes.Add(1)
}

// Broken returns how often somebody came in while another was inside, and how
// many updates of the counter were lost. Ask it when all have left.
func (g *Guard) Broken() (overlaps, lost int64) {
	return g.overlaps.Load(), g.passes.Load() - g.count.Load()
}

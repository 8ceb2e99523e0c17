package storetest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Cutter is a Proxy's judge that lets half of the COMMITs go without an answer:
// it drops or mutes them, by the dice of a seed. Several proxies may share one.
type Cutter struct {
	off atomic.Bool

	mu   sync.Mutex
	dice *rand.Rand
	cut  Cuts
}

// Cuts counts COMMITs without an answer.
type Cuts struct{ Dropped, Muted int }

// NewCutter returns one that is at work.
func NewCutter(seed uint64) *Cutter {
	return &Cutter{dice: rand.New(rand.NewPCG(seed, seed))}
}

// Stop lets all COMMITs pass from now on.
func (c *Cutter) Stop() { c.off.Store(true) }

// Cuts tells what was cut so far.
func (c *Cutter) Cuts() Cuts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// Judge is for Proxy.Judge.
func (c *Cutter) Judge(statement string) Fate {
	if statement != "COMMIT" || c.off.Load() {
		return Pass
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.dice.IntN(4) {
	case 0:
		c.cut.Dropped++
		return Drop
	case 1:
		c.cut.Muted++
		return Mute
	}
	return Pass
}

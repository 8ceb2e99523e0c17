package locksim

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// dice is randomness that belongs to one decision or one actor. It comes from
// the seed and from names alone, so that it does not matter who throws first.
type dice struct {
	*rand.Rand
	grain time.Duration // durations are multiples of it
}

func throw(p *Plan, names ...string) dice {
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, p.Seed))
	for _, n := range names {
		_, _ = h.Write([]byte(n))
		_, _ = h.Write([]byte{0})
	}
	return dice{rand.New(rand.NewPCG(h.Sum64(), p.Seed)), p.grain}
}

// chance is true so often.
func (d dice) chance(share float64) bool { return d.Float64() < share }

// between returns a duration from low to high, in grains.
func (d dice) between(low, high time.Duration) time.Duration {
	t := low + time.Duration(d.Int64N(int64(max(1, high-low))))
	return max(d.grain, t/d.grain*d.grain)
}

func oneOf[T any](d dice, these ...T) T { return these[d.IntN(len(these))] }

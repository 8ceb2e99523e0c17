package locksim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"example.com/shop/internal/lock"
)

// profile is what happens to messages, processes and the store.
type profile struct {
	name string

	slow   float64 // share of messages that take up to one and a half TTL
	lose   float64 // share of calls of which request or answer is lost
	repeat float64 // share of requests that arrive once more, later
	deaf   float64 // share of notifications that are lost

	// At most this many of each. Any profile may close a Locker that is in use.
	partitions int // a process is cut off for a while, or until the faults end
	flushes    int // the store loses its memory
	clockSteps int // the store's clock steps back or forth; not with flushes: together they may lower fences
}

// A seed's profile is the row at seed modulo their number.
var profiles = []profile{
	{name: "calm"},
	{name: "slow", slow: 0.2},
	{name: "lossy", slow: 0.05, lose: 0.1, repeat: 0.1, deaf: 0.2},
	{name: "partitions", partitions: 4, deaf: 0.1},
	{name: "amnesia", flushes: 3, lose: 0.02, repeat: 0.05},
	{name: "clock steps", clockSteps: 4, lose: 0.02, repeat: 0.05},
	{name: "storm", slow: 0.1, lose: 0.1, repeat: 0.1, deaf: 0.2, partitions: 4, flushes: 2},
}

// calm: every answer comes within milliseconds. Then a waiter is served at once, no lease is lost, and nothing is left
// in the store, not even for a TTL.
func (f profile) calm() bool { return f.name == "calm" }

// plan is what a seed stands for: who takes part, and what is done to them.
type plan struct {
	seed    uint64
	profile profile

	// grain: with a nanosecond, hardly two events fall on one instant and a seed repeats itself. With milliseconds they
	// often do, and which is first is the scheduler's choice: that finds other bugs.
	grain time.Duration

	keys      []string
	processes []processPlan
	faults    []fault
	rate      float64       // speed of the store's clock
	longest   time.Duration // of all TTLs
	faulty    time.Duration // when the faults end
}

type processPlan struct {
	name    string
	options lock.Options
	workers int
}

// fault is something that happens at a certain time.
type fault struct {
	at, length time.Duration
	kind       string
	process    int
	step       time.Duration // of the clock
}

// The kinds of faults.
const (
	cutOff  = "cut off"
	closing = "close"
	flush   = "flush"
	step    = "step clock"
)

// newPlan returns the plan of a seed.
func newPlan(seed uint64) *plan {
	p := &plan{seed: seed, profile: profiles[seed%uint64(len(profiles))], grain: time.Nanosecond}
	d := p.draw("plan")
	if d.chance(0.3) {
		p.grain = time.Millisecond
	}
	p.rate = 0.93 + 0.15*d.Float64() // Margin, at least a tenth of the TTL, makes up for 1.11
	for i := range 1 + d.IntN(3) {
		p.keys = append(p.keys, fmt.Sprintf("k%d", i+1))
	}
	for i := range 2 + d.IntN(3) {
		q := processPlan{
			name:    fmt.Sprintf("p%d", i+1),
			options: options(d, p.profile),
			workers: 1 + d.IntN(4),
		}
		p.processes = append(p.processes, q)
		p.longest = max(p.longest, q.options.TTL)
	}
	p.faulty = 6 * p.longest
	p.addFaults(d)
	return p
}

// options returns the options of one process's Locker.
func options(d draw, f profile) lock.Options {
	ms := time.Millisecond
	ttl := oneOf(d, 100*ms, 300*ms, 1000*ms, 1500*ms, 4000*ms)
	if f.calm() { // long enough that a lost notification shows
		ttl = oneOf(d, 4000*ms, 10_000*ms)
	}
	return lock.Options{
		TTL:         ttl,
		Margin:      oneOf(d, ttl/10, ttl/10, ttl/4, ttl/2),
		MaxWait:     oneOf(d, 30*time.Second, -1, -1, 2*ttl),
		MaxQueue:    oneOf(d, 0, 0, 0, 1),
		HandoffTime: oneOf(d, 50*ms, 50*ms, ttl, 5*ms, -1),
	}
}

// addFaults draws the times of what the profile has.
func (p *plan) addFaults(d draw) {
	add := func(most int, kind string) {
		if most == 0 {
			return
		}
		for range 1 + d.IntN(most) {
			f := fault{
				at:      d.between(0, p.faulty),
				length:  d.between(0, oneOf(d, p.longest*3/2, p.longest*3/2, p.faulty)),
				kind:    kind,
				process: d.IntN(len(p.processes)),
				step:    d.between(0, 6*p.longest) - 3*p.longest,
			}
			f.length = min(f.length, p.faulty-f.at)
			p.faults = append(p.faults, f)
		}
	}
	add(p.profile.partitions, cutOff)
	add(d.IntN(2), closing)
	add(p.profile.flushes, flush)
	add(p.profile.clockSteps, step)
	slices.SortFunc(p.faults, func(a, b fault) int { return int(a.at - b.at) })
}

// draw is randomness that belongs to one decision. It comes from the seed and from names alone, so that it does not
// matter which goroutine draws first.
type draw struct {
	*rand.Rand
	grain time.Duration // durations are multiples of it
}

func (p *plan) draw(names ...string) draw {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %q", p.seed, names)
	return draw{rand.New(rand.NewPCG(h.Sum64(), p.seed)), p.grain}
}

// chance is true in this share of cases.
func (d draw) chance(share float64) bool { return d.Float64() < share }

// between returns a duration from low to high, in grains.
func (d draw) between(low, high time.Duration) time.Duration {
	t := low + time.Duration(d.Int64N(int64(max(1, high-low))))
	return max(d.grain, t/d.grain*d.grain)
}

func oneOf[T any](d draw, these ...T) T { return these[d.IntN(len(these))] }

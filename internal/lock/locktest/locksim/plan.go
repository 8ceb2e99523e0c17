package locksim

import (
	"fmt"
	"slices"
	"time"

	"example.com/shop/internal/lock"
)

// Plan is what a seed stands for: who takes part, and what is done to them.
type Plan struct {
	Seed    uint64
	weather weather

	// grain: with a nanosecond, hardly two things happen at one instant and a seed
	// repeats itself. With milliseconds they often do, and what comes first is the
	// scheduler's choice: that finds other bugs.
	grain time.Duration

	keys      []string
	processes []processPlan
	faults    []fault
	rate      float64       // speed of the store's clock
	longest   time.Duration // of all TTLs
	storm     time.Duration // when the faults end
}

type processPlan struct {
	name    string
	options lock.Options
	workers int
	slow    bool // everything it sends takes longer
	resubs  bool // after a partition, it asks again as if it had been called
}

// fault is something that happens at a certain time.
type fault struct {
	at, length time.Duration
	kind       string
	process    int
	step       time.Duration
}

// The kinds of faults.
const (
	cutBoth    = "cut off"
	cutThere   = "cut off, requests only"
	cutBack    = "cut off, answers only"
	crash      = "crash"
	closing    = "close"
	flush      = "flush"
	stepFence  = "step fence clock"
	stepExpiry = "step expiry clock"
)

// NewPlan returns the plan of a seed.
func NewPlan(seed uint64) *Plan {
	p := &Plan{Seed: seed, weather: weathers[seed%uint64(len(weathers))], grain: time.Nanosecond}
	d := throw(p, "plan")
	switch {
	case d.chance(0.15):
		p.grain = time.Millisecond
	case d.chance(0.15) && !p.weather.calm():
		p.grain = 10 * time.Millisecond
	}
	p.rate = 0.93 + 0.15*d.Float64() // Margin, at least a tenth of the TTL, makes up for 1.11
	for i := range 1 + d.IntN(3) {
		p.keys = append(p.keys, fmt.Sprintf("k%d", i+1))
	}
	for i := range 2 + d.IntN(3) {
		q := processPlan{
			name:    fmt.Sprintf("p%d", i+1),
			options: options(d, p.weather),
			workers: 1 + d.IntN(4),
			slow:    d.chance(0.15) && !p.weather.calm(),
			resubs:  d.chance(0.5),
		}
		p.processes = append(p.processes, q)
		p.longest = max(p.longest, q.options.TTL)
	}
	p.storm = 6 * p.longest
	p.addFaults(d)
	return p
}

// options returns those of one process.
func options(d dice, w weather) lock.Options {
	ms := time.Millisecond
	ttl := oneOf(d, 100*ms, 300*ms, 1000*ms, 1500*ms, 4000*ms)
	if w.calm() { // long enough that a lost wake-up shows
		ttl = oneOf(d, 4000*ms, 10_000*ms)
	}
	return lock.Options{
		TTL:         ttl,
		Margin:      oneOf(d, 0, 0, ttl/4, ttl/2),
		MaxWait:     oneOf(d, 0, -1, -1, 2*ttl),
		MaxHold:     oneOf(d, 0, 0, 2*ttl),
		MaxQueue:    oneOf(d, 0, 0, 0, 1),
		MaxHandoffs: oneOf(d, 0, 1, 3, -1),
		HandoffTime: oneOf(d, 0, 0, ttl, 5*ms),
	}
}

// addFaults draws the times of what the weather has.
func (p *Plan) addFaults(d dice) {
	w := p.weather
	add := func(most int, kinds ...string) {
		if most == 0 {
			return
		}
		for range 1 + d.IntN(most) {
			at := d.between(0, p.storm)
			p.faults = append(p.faults, fault{
				at:      at,
				length:  min(d.between(0, p.longest*3/2), p.storm-at),
				kind:    oneOf(d, kinds...),
				process: d.IntN(len(p.processes)),
				step:    d.between(0, 3*p.longest) * time.Duration(oneOf(d, -1, 1)),
			})
		}
	}
	add(w.partitions, cutBoth, cutThere, cutBack)
	add(w.crashes, crash)
	add(d.IntN(2), closing)
	add(w.flushes, flush)
	add(w.fenceSteps, stepFence)
	add(w.clockSteps, stepExpiry)
	slices.SortFunc(p.faults, func(a, b fault) int { return int(a.at - b.at) })
}

// Repeats reports whether two runs of the plan have the same log.
func (p *Plan) Repeats() bool { return p.grain == time.Nanosecond }

// String describes the plan, for the log of a seed that fails.
func (p *Plan) String() string {
	s := fmt.Sprintf("seed %d: weather %q, grain %v, keys %v, store's clock x %.3f, faults until %v\n",
		p.Seed, p.weather.name, p.grain, p.keys, p.rate, p.storm)
	for _, q := range p.processes {
		o := q.options
		s += fmt.Sprintf("%s: %d workers, TTL %v, Margin %v, MaxWait %v, MaxHold %v, MaxQueue %d, MaxHandoffs %d, HandoffTime %v\n",
			q.name, q.workers, o.TTL, o.Margin, o.MaxWait, o.MaxHold, o.MaxQueue, o.MaxHandoffs, o.HandoffTime)
	}
	return s
}

package main

import (
	"fmt"
	"slices"
	"strings"

	"example.com/shop/loadtest/peers/peer"
	"example.com/shop/loadtest/stats"
)

// rates returns a peer's turns per second, round by round; nil if it was not
// there. A round in which it hung is 0, which counts nowhere: that it hung is told
// apart, and a peer is compared by what it does when it works.
func (c caseReport) rates(name string) []float64 {
	i := slices.IndexFunc(c.Peers, func(p peerReport) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return collect(c.Peers[i].Turns, func(t turns) float64 {
		if t.Hung != "" {
			return 0
		}
		return t.PerSecond
	})
}

// fastest returns the fastest library other than ours, by its median; empty if
// there is none. Raw is no library.
func (c caseReport) fastest() string {
	name, best := "", 0.0
	for _, p := range c.Peers {
		if p.Name == peer.Ours || p.Name == peer.Raw {
			continue
		}
		if rate := stats.Median(ended(c.rates(p.Name))); rate > best {
			name, best = p.Name, rate
		}
	}
	return name
}

func (p peerReport) longestWait() float64 {
	return stats.Max(collect(p.Turns, func(t turns) float64 { return t.LongestWait }))
}

// leastFair shows the round in which the turns were spread worst.
func (p peerReport) leastFair() string {
	if len(p.Turns) == 0 || p.Turns[0].Of < 2 {
		return "-"
	}
	unfair := func(t turns) float64 { return float64(t.Most) / max(float64(t.Least), 0.5) }
	worst := slices.MaxFunc(p.Turns, func(a, b turns) int {
		switch x, y := unfair(a), unfair(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	if worst.Least == 0 {
		return fmt.Sprintf("%d/0", worst.Most)
	}
	return fmt.Sprintf("%d/%d = %.2f", worst.Most, worst.Least, unfair(worst))
}

// right is yes, or what went wrong over all rounds.
func (p peerReport) right() string {
	var sum turns
	for _, t := range p.Turns {
		sum.Overlaps += t.Overlaps
		sum.Lost += t.Lost
		sum.Errors += t.Errors
		if sum.FirstError == "" {
			sum.FirstError = t.FirstError
		}
		if sum.Hung == "" {
			sum.Hung = t.Hung
		}
	}
	var wrong []string
	if sum.Overlaps > 0 || sum.Lost > 0 {
		wrong = append(wrong, fmt.Sprintf("NO: %d overlaps, %d lost updates", sum.Overlaps, sum.Lost))
	}
	if sum.Hung != "" {
		wrong = append(wrong, sum.Hung)
	}
	if sum.Errors > 0 {
		wrong = append(wrong, fmt.Sprintf("%d errors, the first: %s", sum.Errors, sum.FirstError))
	}
	if len(wrong) == 0 {
		return "yes"
	}
	return strings.ReplaceAll(strings.Join(wrong, "; "), "\n", ", ")
}

// ended leaves out the rounds in which a peer hung.
func ended(rates []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(rates), func(r float64) bool { return r == 0 })
}

func collect[T any](all []T, f func(T) float64) []float64 {
	var values []float64
	for _, v := range all {
		values = append(values, f(v))
	}
	return values
}

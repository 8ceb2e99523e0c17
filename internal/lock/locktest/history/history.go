// Package history checks afterwards what the holders of a simulation report of their leases.
//
// Each user of a lock records one Lease for each that it had: which holder, which key, which fence, from when until
// when it trusted it. Check then reads all of them at once and looks for two rules:
//
//   - of all leases on a key, one at a time is trusted;
//   - a lease's fence is higher than that of every earlier lease on its key.
//
// History.Forgot says when the store lost its memory. It may then grant a key whose first holder still trusts it, so that
// Check does not judge whether leases on both sides of such an instant overlap.
package history

import (
	"fmt"
	"slices"
	"time"
)

// Lease is one lease, as its holder saw it.
type Lease struct {
	Key    string
	Holder string // shown by a failure
	Fence  int64  // 0: the store mints none

	// Since is when the store was asked for the key, at the latest. A lease that was handed over inside its process has
	// the Since of the one before it.
	Since time.Time

	// Begin is when Acquire returned, End when Release was called or the lease's context ended, whichever came first. End
	// equal to Begin: it was never trusted.
	Begin, End time.Time
}

// trusted reports whether its holder ever could act under it.
func (e Lease) trusted() bool { return e.Begin.Before(e.End) }

// History is what was recorded.
type History struct {
	Leases []Lease
	Forgot []time.Time // when the store lost its memory of leases, or took them for older than they were
}

// hasForgotten reports whether the store has forgotten something from one time to the other.
func (h *History) hasForgotten(from, to time.Time) bool {
	return slices.ContainsFunc(h.Forgot, func(at time.Time) bool { return !at.Before(from) && !at.After(to) })
}

// Broken is a rule that two leases break.
type Broken struct {
	Rule          string
	Before, After Lease
}

// String has all that is needed to see it.
func (b Broken) String() string {
	return fmt.Sprintf("%s: key %q: %s had fence %d from %s to %s; %s had fence %d from %s to %s",
		b.Rule, b.Before.Key,
		b.Before.Holder, b.Before.Fence, b.Before.Begin.Format(clock), b.Before.End.Format(clock),
		b.After.Holder, b.After.Fence, b.After.Begin.Format(clock), b.After.End.Format(clock))
}

const clock = "15:04:05.000000000"

// The rules.
const (
	Exclusive  = "one lease at a time is trusted"
	FencesRise = "fences rise"
)

// Check returns what is broken, nil if all is well.
func (h *History) Check() []Broken {
	var broken []Broken
	inOrder := slices.Clone(h.Leases)
	slices.SortStableFunc(inOrder, func(a, b Lease) int { return a.Begin.Compare(b.Begin) })
	earlier := make(map[string][]Lease)
	for _, b := range inOrder {
		before := earlier[b.Key]
		for i := range before {
			a := &before[i]
			if a.Fence < b.Fence && !b.Begin.Before(a.End) {
				continue // nearly all: neither rule can be broken
			}
			if rule := h.judge(*a, b); rule != "" {
				broken = append(broken, Broken{rule, *a, b})
			}
		}
		earlier[b.Key] = append(before, b)
	}
	return broken
}

// judge compares two leases on one key, of which a began first.
func (h *History) judge(a, b Lease) (rule string) {
	since := a.Since
	if b.Since.Before(since) {
		since = b.Since
	}
	forgot := h.hasForgotten(since, b.Begin)
	trusted := a.trusted() && b.trusted()
	if !forgot && trusted && b.Begin.Before(a.End) {
		return Exclusive
	}
	// They were granted in this order if one was there before the other was asked for; or if both were trusted, each in
	// its time. An answer may come later than that of a later grant, if its process was paused or the store forgot.
	ordered := a.Begin.Before(b.Since) || trusted && !forgot
	if ordered && a.Fence != 0 && b.Fence <= a.Fence {
		return FencesRise
	}
	return ""
}

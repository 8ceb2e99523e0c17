package history

import "fmt"

// Broken is a rule that two leases break.
type Broken struct {
	Rule          string
	Before, After Lease
}

// String tells all that is needed to see it.
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
	earlier := make(map[string][]Lease)
	for _, b := range h.Leases() {
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
	h.mu.Lock()
	defer h.mu.Unlock()
	since := a.Since
	if b.Since.Before(since) {
		since = b.Since
	}
	forgot := between(h.forgot, since, b.Begin)
	trusted := a.trusted() && b.trusted()
	if !forgot && trusted && b.Begin.Before(a.End) {
		return Exclusive
	}
	// They were granted in this order if one was there before the other was asked
	// for; or if both were trusted, each in its time. An answer may come later than
	// that of a later grant, if its process was paused or the store forgot.
	ordered := a.Begin.Before(b.Since) || trusted && !forgot
	if ordered && !between(h.rewound, since, b.Begin) && a.Fence != 0 && b.Fence <= a.Fence {
		return FencesRise
	}
	return ""
}

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
	for _, e := range h.Leases() {
		for _, b := range earlier[e.Key] {
			if rule := h.judge(b, e); rule != "" {
				broken = append(broken, Broken{rule, b, e})
			}
		}
		earlier[e.Key] = append(earlier[e.Key], e)
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
	if !forgot && b.Begin.Before(a.End) && a.Begin.Before(a.End) && b.Begin.Before(b.End) {
		return Exclusive
	}
	// After a loss of memory, an answer may come later than that of a later grant:
	// they are in order only if one was there before the other was asked for.
	ordered := !forgot || a.Begin.Before(b.Since)
	if ordered && !between(h.rewound, since, b.Begin) && a.Fence != 0 && b.Fence <= a.Fence {
		return FencesRise
	}
	return ""
}

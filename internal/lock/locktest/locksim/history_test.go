package locksim

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// leaseRecord is one lease, as its holder saw it.
type leaseRecord struct {
	key    string
	holder string // shown by a failure
	fence  int64  // 0: the store mints none

	// since is when the store was asked for the key, at the latest. A lease that was handed over inside its process has
	// the since of the one before it.
	since time.Time

	// begin is when Acquire returned, end when Release was called or the lease's context ended, whichever came first. end
	// equal to begin: it was never trusted.
	begin, end time.Time
}

// trusted reports whether its holder ever could act under it.
func (e leaseRecord) trusted() bool { return e.begin.Before(e.end) }

// history is what the holders recorded. Its check looks for two rules: of all leases on a key, one at a time is trusted;
// and a lease's fence is higher than that of every earlier lease on its key.
type history struct {
	leases []leaseRecord

	// forgot is when the store lost its memory of leases, or took them for older than they were. It may then grant a key
	// whose first holder still trusts it, so that leases on both sides of such an instant may overlap.
	forgot []time.Time
}

// hasForgotten reports whether the store has forgotten something from one time to the other.
func (h *history) hasForgotten(from, to time.Time) bool {
	return slices.ContainsFunc(h.forgot, func(at time.Time) bool { return !at.Before(from) && !at.After(to) })
}

// violation is a rule that two leases break.
type violation struct {
	rule          string
	before, after leaseRecord
}

// String has all that is needed to see it.
func (b violation) String() string {
	return fmt.Sprintf("%s: key %q: %s had fence %d from %s to %s; %s had fence %d from %s to %s",
		b.rule, b.before.key,
		b.before.holder, b.before.fence, b.before.begin.Format(clock), b.before.end.Format(clock),
		b.after.holder, b.after.fence, b.after.begin.Format(clock), b.after.end.Format(clock))
}

const clock = "15:04:05.000000000"

// The rules.
const (
	exclusive  = "one lease at a time is trusted"
	fencesRise = "fences rise"
)

// check returns what is broken, nil if all is well.
func (h *history) check() []violation {
	var broken []violation
	inOrder := slices.Clone(h.leases)
	slices.SortStableFunc(inOrder, func(a, b leaseRecord) int { return a.begin.Compare(b.begin) })
	earlier := make(map[string][]leaseRecord)
	for _, b := range inOrder {
		before := earlier[b.key]
		for i := range before {
			a := &before[i]
			if a.fence < b.fence && !b.begin.Before(a.end) {
				continue // nearly all: neither rule can be broken
			}
			if rule := h.judge(*a, b); rule != "" {
				broken = append(broken, violation{rule, *a, b})
			}
		}
		earlier[b.key] = append(before, b)
	}
	return broken
}

// judge compares two leases on one key, of which a began first.
func (h *history) judge(a, b leaseRecord) (rule string) {
	since := a.since
	if b.since.Before(since) {
		since = b.since
	}
	forgot := h.hasForgotten(since, b.begin)
	trusted := a.trusted() && b.trusted()
	if !forgot && trusted && b.begin.Before(a.end) {
		return exclusive
	}
	// They were granted in this order if one was there before the other was asked for; or if both were trusted, each in
	// its time. An answer may come later than that of a later grant, if its process was paused or the store forgot.
	ordered := a.begin.Before(b.since) || trusted && !forgot
	if ordered && a.fence != 0 && b.fence <= a.fence {
		return fencesRise
	}
	return ""
}

// at returns an instant, in seconds.
func at(second int) time.Time { return time.Unix(int64(second), 0) }

func record(fence int64, since, begin, end int) leaseRecord {
	return leaseRecord{key: "key", holder: "p", fence: fence, since: at(since), begin: at(begin), end: at(end)}
}

// The check finds what is broken, and only that.
func TestHistory(t *testing.T) {
	other := record(1, 0, 1, 9)
	other.key = "other"
	for name, c := range map[string]struct {
		leases []leaseRecord
		forgot []int
		want   string // the one rule that is broken
	}{
		"one after the other":        {leases: []leaseRecord{record(7, 0, 1, 2), record(8, 2, 3, 4)}},
		"handed over":                {leases: []leaseRecord{record(7, 0, 1, 2), record(8, 0, 2, 4)}},
		"out of order":               {leases: []leaseRecord{record(8, 2, 3, 4), record(7, 0, 1, 2)}},
		"different keys":             {leases: []leaseRecord{record(7, 0, 1, 9), other}},
		"overlap":                    {leases: []leaseRecord{record(7, 0, 1, 5), record(8, 2, 3, 4)}, want: exclusive},
		"overlap at once":            {leases: []leaseRecord{record(7, 0, 1, 5), record(8, 0, 1, 4)}, want: exclusive},
		"never trusted":              {leases: []leaseRecord{record(7, 0, 1, 5), record(8, 2, 3, 3)}},
		"overlap after a flush":      {leases: []leaseRecord{record(7, 0, 1, 5), record(8, 2, 3, 4)}, forgot: []int{2}},
		"overlap before a flush":     {leases: []leaseRecord{record(7, 0, 1, 5), record(8, 2, 3, 4)}, forgot: []int{6}, want: exclusive},
		"flushed in time":            {leases: []leaseRecord{record(7, 4, 5, 8), record(8, 5, 6, 8)}, forgot: []int{4}},
		"flushed before both":        {leases: []leaseRecord{record(7, 4, 5, 8), record(8, 5, 6, 8)}, forgot: []int{3}, want: exclusive},
		"same fence":                 {leases: []leaseRecord{record(7, 0, 1, 2), record(7, 2, 3, 4)}, want: fencesRise},
		"fence falls":                {leases: []leaseRecord{record(7, 0, 1, 2), record(6, 2, 3, 4)}, want: fencesRise},
		"fence falls after a flush":  {leases: []leaseRecord{record(7, 0, 1, 2), record(6, 3, 4, 5)}, forgot: []int{2}, want: fencesRise},
		"answer late, not trusted":   {leases: []leaseRecord{record(8, 2, 3, 4), record(7, 1, 5, 5)}},
		"answer late, yet trusted":   {leases: []leaseRecord{record(8, 2, 3, 4), record(7, 1, 5, 6)}, want: fencesRise},
		"fence falls, not trusted":   {leases: []leaseRecord{record(8, 2, 3, 3), record(7, 4, 5, 5)}, want: fencesRise},
		"asked for at once":          {leases: []leaseRecord{record(7, 0, 3, 4), record(6, 1, 4, 5)}, forgot: []int{1}},
		"asked for before the flush": {leases: []leaseRecord{record(7, 3, 4, 5), record(6, 1, 5, 6)}, forgot: []int{2}},
		"no fences":                  {leases: []leaseRecord{record(0, 0, 1, 2), record(0, 2, 3, 4)}},
		"against all before":         {leases: []leaseRecord{record(7, 0, 1, 9), record(8, 2, 3, 3), record(9, 3, 4, 5)}, want: exclusive},
	} {
		t.Run(name, func(t *testing.T) {
			h := history{leases: c.leases}
			for _, second := range c.forgot {
				h.forgot = append(h.forgot, at(second))
			}
			got := h.check()
			if c.want == "" && len(got) != 0 || c.want != "" && (len(got) != 1 || got[0].rule != c.want) {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}

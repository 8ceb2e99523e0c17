package history_test

import (
	"testing"
	"time"

	"example.com/shop/internal/lock/locktest/history"
)

// at returns an instant, in seconds.
func at(second int) time.Time { return time.Unix(int64(second), 0) }

func lease(fence int64, since, begin, end int) history.Lease {
	return history.Lease{Key: "key", Holder: "p", Fence: fence, Since: at(since), Begin: at(begin), End: at(end)}
}

// Check finds what is broken, and only that.
func TestHistory_Check(t *testing.T) {
	other := lease(1, 0, 1, 9)
	other.Key = "other"
	for name, c := range map[string]struct {
		leases []history.Lease
		forgot []int
		want   string // the one rule that is broken
	}{
		"one after the other":        {leases: []history.Lease{lease(7, 0, 1, 2), lease(8, 2, 3, 4)}},
		"handed over":                {leases: []history.Lease{lease(7, 0, 1, 2), lease(8, 0, 2, 4)}},
		"out of order":               {leases: []history.Lease{lease(8, 2, 3, 4), lease(7, 0, 1, 2)}},
		"different keys":             {leases: []history.Lease{lease(7, 0, 1, 9), other}},
		"overlap":                    {leases: []history.Lease{lease(7, 0, 1, 5), lease(8, 2, 3, 4)}, want: history.Exclusive},
		"overlap at once":            {leases: []history.Lease{lease(7, 0, 1, 5), lease(8, 0, 1, 4)}, want: history.Exclusive},
		"never trusted":              {leases: []history.Lease{lease(7, 0, 1, 5), lease(8, 2, 3, 3)}},
		"overlap after a flush":      {leases: []history.Lease{lease(7, 0, 1, 5), lease(8, 2, 3, 4)}, forgot: []int{2}},
		"overlap before a flush":     {leases: []history.Lease{lease(7, 0, 1, 5), lease(8, 2, 3, 4)}, forgot: []int{6}, want: history.Exclusive},
		"flushed in time":            {leases: []history.Lease{lease(7, 4, 5, 8), lease(8, 5, 6, 8)}, forgot: []int{4}},
		"flushed before both":        {leases: []history.Lease{lease(7, 4, 5, 8), lease(8, 5, 6, 8)}, forgot: []int{3}, want: history.Exclusive},
		"same fence":                 {leases: []history.Lease{lease(7, 0, 1, 2), lease(7, 2, 3, 4)}, want: history.FencesRise},
		"fence falls":                {leases: []history.Lease{lease(7, 0, 1, 2), lease(6, 2, 3, 4)}, want: history.FencesRise},
		"fence falls after a flush":  {leases: []history.Lease{lease(7, 0, 1, 2), lease(6, 3, 4, 5)}, forgot: []int{2}, want: history.FencesRise},
		"answer late, not trusted":   {leases: []history.Lease{lease(8, 2, 3, 4), lease(7, 1, 5, 5)}},
		"answer late, yet trusted":   {leases: []history.Lease{lease(8, 2, 3, 4), lease(7, 1, 5, 6)}, want: history.FencesRise},
		"fence falls, not trusted":   {leases: []history.Lease{lease(8, 2, 3, 3), lease(7, 4, 5, 5)}, want: history.FencesRise},
		"asked for at once":          {leases: []history.Lease{lease(7, 0, 3, 4), lease(6, 1, 4, 5)}, forgot: []int{1}},
		"asked for before the flush": {leases: []history.Lease{lease(7, 3, 4, 5), lease(6, 1, 5, 6)}, forgot: []int{2}},
		"no fences":                  {leases: []history.Lease{lease(0, 0, 1, 2), lease(0, 2, 3, 4)}},
		"against all before":         {leases: []history.Lease{lease(7, 0, 1, 9), lease(8, 2, 3, 3), lease(9, 3, 4, 5)}, want: history.Exclusive},
	} {
		t.Run(name, func(t *testing.T) {
			h := history.History{Leases: c.leases}
			for _, second := range c.forgot {
				h.Forgot = append(h.Forgot, at(second))
			}
			got := h.Check()
			if c.want == "" && len(got) != 0 || c.want != "" && (len(got) != 1 || got[0].Rule != c.want) {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}

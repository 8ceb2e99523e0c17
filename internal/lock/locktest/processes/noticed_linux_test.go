package processes

import (
	"slices"
	"testing"
	"time"

	"example.com/shop/internal/lock/locktest/history"
)

// What children with a broken lock tell is noticed.
func TestProcesses_Noticed(t *testing.T) {
	t.Parallel()
	for store, rule := range map[string]string{
		"a memory of its own": history.Exclusive,
		"fences of its own":   history.FencesRise,
	} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			addr, w := servers["embedded"](t), newTold()
			ps := []*process{
				start(t, w, arguments{Name: "p1", Store: store, Addr: addr}),
				start(t, w, arguments{Name: "p2", Store: store, Addr: addr}),
			}
			for range 3 {
				busy(t, ps)
			}
			end(t, ps)
			if found := rules(w); !slices.Contains(found, rule) {
				t.Errorf("found %q, want %q among them", found, rule)
			}
		})
	}
}

// rules returns those that are broken by what was told, each once.
func rules(w *told) (found []string) {
	for _, b := range w.history().Check() {
		if !slices.Contains(found, b.Rule) {
			found = append(found, b.Rule)
		}
	}
	return found
}

// A lease is judged by the last that was told of it, also if its holder was
// killed before it could tell of the end.
func TestTold(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	begun := func(child string, fence int64, begin, end int) report {
		return report{Child: child, ID: 1, Lease: history.Lease{
			Key: "a", Holder: child, Fence: fence, Since: at(begin - 1), Begin: at(begin), End: at(end),
		}}
	}
	for name, c := range map[string]struct {
		reports []report
		want    []string
	}{
		"one after the other": {reports: []report{begun("p1", 7, 1, 2), begun("p1", 7, 1, 3), begun("p2", 8, 3, 4)}},
		"one beside the other": {
			reports: []report{begun("p1", 7, 1, 2), begun("p2", 8, 3, 4), begun("p1", 7, 1, 5)},
			want:    []string{history.Exclusive},
		},
		"killed":          {reports: []report{begun("p1", 7, 1, 2), begun("p2", 8, 3, 4)}},
		"killed too late": {reports: []report{begun("p1", 7, 1, 4), begun("p2", 8, 3, 5)}, want: []string{history.Exclusive}},
		"killed, ahead":   {reports: []report{begun("p1", 9, 1, 2), begun("p2", 8, 4, 5)}, want: []string{history.FencesRise}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTold()
			for _, r := range c.reports {
				w.add(r)
			}
			if got := rules(w); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

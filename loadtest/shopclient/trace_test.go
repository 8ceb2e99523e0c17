package shopclient

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func Test_parseTrace(t *testing.T) {
	t.Parallel()
	left, mugs := int64(99), int64(8)
	for name, tt := range map[string]struct {
		header string
		want   *Trace
	}{
		// About the SKU of the first line: what a cart did about the others is not mixed in.
		"a cart": {
			"begun;at=1, read;at=2;sku=mug;units=9, read;at=2;sku=cup;units=5, writing;at=3, written;at=4;sku=mug;units=8, written;at=4;sku=cup;units=4, committed;at=5",
			&Trace{Begun: 1, Read: 2, Writing: 3, Written: 4, Committed: 5, Seen: 9, Wrote: &mugs},
		},
		"none":        {"", nil},
		"nonsense":    {"a, b;c;=;at=x", nil},
		"not read":    {"begun;at=5", nil},
		"no time":     {"begun;at=, read;units=1", nil},
		"sold out":    {"begun;at=5, read;at=7;sku=mug;units=0", &Trace{Begun: 5, Read: 7}},
		"an unknown":  {"begun;at=5, slept;at=6, read;at=7;sku=mug;units=3", &Trace{Begun: 5, Read: 7, Seen: 3}},
		"the last":    {"begun;at=5, read;at=7;units=3, read;at=9;units=2", &Trace{Begun: 5, Read: 9, Seen: 2}},
		"subtracting": {"begun;at=5, read;at=7;units=3, written;at=8;sku=mug", &Trace{Begun: 5, Read: 7, Seen: 3, Written: 8}},
		"unread": {
			"begun;at=5, lock-asked;at=6, lock-held;at=7, writing;at=8, written;at=9;sku=mug, committed;at=10",
			&Trace{Begun: 5, LockAsked: 6, LockHeld: 7, Writing: 8, Written: 9, Committed: 10},
		},
		"all": {
			"begun;at=1, lock-asked;at=2, lock-held;at=3, read;at=4;sku=mug;units=100, writing;at=5, written;at=6;sku=mug;units=99, committed;at=7, released;at=8",
			&Trace{
				Begun: 1, LockAsked: 2, LockHeld: 3, Read: 4, Writing: 5, Written: 6, Committed: 7, Released: 8,
				Seen: 100, Wrote: &left,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, parseTrace(tt.header, "mug")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

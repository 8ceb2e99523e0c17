package shopclient

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func Test_parseTrace(t *testing.T) {
	t.Parallel()
	at := time.UnixMicro
	left := int64(99)
	for name, tt := range map[string]struct {
		header string
		want   *Trace
	}{
		"none":        {"", nil},
		"nonsense":    {"a, b;c;=;at=x", nil},
		"not read":    {"begun;at=5", nil},
		"no time":     {"begun;at=, read;units=1", nil},
		"sold out":    {"begun;at=5, read;at=7;sku=mug;units=0", &Trace{Begun: at(5), Read: at(7)}},
		"an unknown":  {"begun;at=5, slept;at=6, read;at=7;sku=mug;units=3", &Trace{Begun: at(5), Read: at(7), Seen: 3}},
		"the last":    {"begun;at=5, read;at=7;units=3, read;at=9;units=2", &Trace{Begun: at(5), Read: at(9), Seen: 2}},
		"subtracting": {"begun;at=5, read;at=7;units=3, written;at=8;sku=mug", &Trace{Begun: at(5), Read: at(7), Seen: 3, Written: at(8)}},
		"unread": {
			"begun;at=5, lock-asked;at=6, lock-held;at=7, writing;at=8, written;at=9;sku=mug, committed;at=10",
			&Trace{Begun: at(5), LockAsked: at(6), LockHeld: at(7), Writing: at(8), Written: at(9), Committed: at(10)},
		},
		"all": {
			"begun;at=1, lock-asked;at=2, lock-held;at=3, read;at=4;sku=mug;units=100, writing;at=5, written;at=6;sku=mug;units=99, committed;at=7, released;at=8",
			&Trace{
				Begun: at(1), LockAsked: at(2), LockHeld: at(3), Read: at(4), Writing: at(5), Written: at(6), Committed: at(7), Released: at(8),
				Seen: 100, Wrote: &left,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, parseTrace(tt.header, []Line{{SKU: "mug", Units: 1}})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// "About the SKU of the first line": what a cart did about the others is not mixed
// in.
func Test_parseTrace_cart(t *testing.T) {
	t.Parallel()
	const header = "begun;at=1, read;at=2;sku=mug;units=9, read;at=2;sku=cup;units=5, writing;at=3, written;at=4;sku=mug;units=8, written;at=4;sku=cup;units=4, committed;at=5"
	left := int64(8)
	at := time.UnixMicro
	want := &Trace{Begun: at(1), Read: at(2), Writing: at(3), Written: at(4), Committed: at(5), Seen: 9, Wrote: &left}
	if diff := cmp.Diff(want, parseTrace(header, []Line{{"mug", 1}, {"cup", 1}})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

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
			`[{"step":"begun","at":1},{"step":"read","sku":"mug","units":9,"at":2},{"step":"read","sku":"cup","units":5,"at":2},{"step":"writing","at":3},{"step":"written","sku":"mug","units":8,"at":4},{"step":"written","sku":"cup","units":4,"at":4},{"step":"committed","at":5}]`,
			&Trace{Begun: 1, Read: 2, Writing: 3, Written: 4, Committed: 5, Seen: 9, Wrote: &mugs},
		},
		"nonsense":    {`{"step":1}`, nil},
		"sold out":    {`[{"step":"begun","at":5},{"step":"read","sku":"mug","units":0,"at":7}]`, &Trace{Begun: 5, Read: 7}},
		"subtracting": {`[{"step":"begun","at":5},{"step":"read","units":3,"at":7},{"step":"written","sku":"mug","at":8}]`, &Trace{Begun: 5, Read: 7, Seen: 3, Written: 8}},
		"all": {
			`[{"step":"begun","at":1},{"step":"lock-asked","at":2},{"step":"lock-held","at":3},{"step":"read","sku":"mug","units":100,"at":4},{"step":"writing","at":5},{"step":"written","sku":"mug","units":99,"at":6},{"step":"committed","at":7},{"step":"released","at":8}]`,
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

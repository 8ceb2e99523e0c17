package orderhttp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
)

// "It remembers what short bodies of orders say": the same text the same lines, and
// "when there are too many, it starts anew".
func TestBodies(t *testing.T) {
	t.Parallel()
	var b bodies
	said := []order.RequestLine{{SKU: "mug", Units: 2}}
	text := []byte("some text")
	if _, known := b.lines(text); known {
		t.Error("known before it was remembered")
	}
	b.remember(text, said)
	got, known := b.lines([]byte("some text"))
	if diff := cmp.Diff(said, got); diff != "" || !known {
		t.Errorf("known %v (-want +got):\n%s", known, diff)
	}
	long := []byte(strings.Repeat("x", shortBody+1))
	b.remember(long, said)
	if _, known := b.lines(long); known {
		t.Error("a long one is remembered")
	}
	b.remember([]byte("many"), make([]order.RequestLine, order.MaxLines+1))
	if _, known := b.lines([]byte("many")); known {
		t.Error("one of many lines is remembered")
	}
	for i := range 2*knownBodies + 1 {
		b.remember(fmt.Append(nil, i), said)
		if len(b.known) > knownBodies {
			t.Fatalf("%d are known, want %d at most", len(b.known), knownBodies)
		}
	}
	if _, known := b.lines(text); known {
		t.Error("known for ever")
	}
}

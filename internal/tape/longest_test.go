package tape

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// doc.go: "It ends by Resume, with the request's own context, or after Longest, which
// is recorded."
func TestTape_longest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewShelf()
		ctx, tape := record(t, s, Request{Name: "a", Stop: "step:read"})
		began := time.Now()
		tape.Step(ctx, "read", "")
		if took := time.Since(began); took != Longest {
			t.Errorf("stopped for %v, want %v", took, Longest)
		}
		seen, err := s.Look(ctx, "a", 0)
		if err != nil || !strings.Contains(strings.Join(told(seen), ";"), "goes on by itself") {
			t.Errorf("%v, got %q, want it recorded", err, told(seen))
		}
	})
}

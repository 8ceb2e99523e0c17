package load

import (
	"testing"
	"time"
)

// The clock "opens when every buyer had an answer", and no sooner than warm.
func TestClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		answers []time.Duration
		from    time.Duration
	}{
		{"a slow buyer", []time.Duration{1, 50}, 50},
		{"fast ones", []time.Duration{1, 2}, 10},
	} {
		clock := newClock(len(c.answers), 10, 100)
		for _, at := range c.answers {
			if clock.opened(1<<40) || clock.ended(1<<40) {
				t.Errorf("%s: open before the last one had an answer", c.name)
			}
			clock.firstAnswer(at)
		}
		if clock.opened(c.from-1) || !clock.opened(c.from) || clock.ended(c.from+99) || !clock.ended(c.from+100) {
			t.Errorf("%s: got open from %d for %d, want from %d for 100", c.name, clock.from.Load(), clock.open, c.from)
		}
	}
	if c := openClock(100); !c.opened(0) || c.ended(99) || !c.ended(100) {
		t.Error("want an open clock to be open from 0 to 99")
	}
}

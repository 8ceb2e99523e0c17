package redlock

import (
	"math"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/lock"
)

func TestTally(t *testing.T) {
	for _, c := range []struct {
		tally            tally
		quorum           int
		won, lost        bool
		settled, certain bool // enough for one who asks for a key, for one who has it
	}{
		{tally: tally{nodes: 1}, quorum: 1},
		{tally: tally{nodes: 1, yes: 1}, quorum: 1, won: true, settled: true, certain: true},
		{tally: tally{nodes: 1, no: 1}, quorum: 1, lost: true, settled: true, certain: true},
		{tally: tally{nodes: 1, failed: 1}, quorum: 1, settled: true, certain: true},
		{tally: tally{nodes: 2, yes: 1}, quorum: 2},
		{tally: tally{nodes: 2, yes: 1, no: 1}, quorum: 2, lost: true, settled: true, certain: true},
		{tally: tally{nodes: 3, yes: 2}, quorum: 2, won: true, settled: true, certain: true},
		{tally: tally{nodes: 3, yes: 1, no: 1}, quorum: 2},
		{tally: tally{nodes: 3, no: 2}, quorum: 2, lost: true, settled: true, certain: true},
		{tally: tally{nodes: 4, yes: 2, no: 1}, quorum: 3},
		{tally: tally{nodes: 4, yes: 2, no: 2}, quorum: 3, lost: true, settled: true, certain: true},
		{tally: tally{nodes: 5}, quorum: 3},
		{tally: tally{nodes: 5, yes: 2, no: 2}, quorum: 3},
		{tally: tally{nodes: 5, yes: 3, no: 2}, quorum: 3, won: true, settled: true, certain: true},
		{tally: tally{nodes: 5, yes: 3}, quorum: 3, won: true, settled: true, certain: true},
		{tally: tally{nodes: 5, yes: 2, failed: 2}, quorum: 3},
		{tally: tally{nodes: 5, yes: 2, failed: 3}, quorum: 3, settled: true, certain: true},
		{tally: tally{nodes: 5, no: 1, failed: 2}, quorum: 3, settled: true}, // two more can still say that it is gone
		{tally: tally{nodes: 5, no: 3, failed: 2}, quorum: 3, lost: true, settled: true, certain: true},
		{tally: tally{nodes: 5, yes: 1, no: 1, failed: 2}, quorum: 3, settled: true, certain: true},
		{tally: tally{nodes: 5, failed: 3}, quorum: 3, settled: true, certain: true},
		{tally: tally{nodes: 7, yes: 3, no: 3}, quorum: 4},
		{tally: tally{nodes: 7, no: 4}, quorum: 4, lost: true, settled: true, certain: true},
	} {
		got := c
		got.quorum, got.won, got.lost = c.tally.quorum(), c.tally.won(), c.tally.lost()
		got.settled, got.certain = c.tally.settled(), c.tally.certain()
		if got != c {
			t.Errorf("got %+v, want %+v", got, c)
		}
	}
}

// Any two quorums share a node, and nobody can win what another has lost.
func TestTally_QuorumsMeet(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for yes := 0; yes <= n; yes++ {
			one, other := tally{nodes: n, yes: yes, no: n - yes}, tally{nodes: n, yes: n - yes, no: yes}
			if one.won() && other.won() {
				t.Errorf("%d nodes: two win, with %d and %d", n, yes, n-yes)
			}
			if one.won() == one.lost() {
				t.Errorf("%d nodes, %d agree: won %v, lost %v", n, yes, one.won(), one.lost())
			}
		}
	}
}

// "validity, TTL - elapsed - drift"
func TestValidity(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		ttl, elapsed time.Duration
		factor       float64
		want         time.Duration
	}{
		{10 * time.Second, 0, 0.01, 9898 * ms},
		{10 * time.Second, 50 * ms, 0.01, 9848 * ms},
		{100 * ms, 97 * ms, 0.01, 0},
		{100 * ms, 98 * ms, 0.01, -ms},
		{time.Second, 100 * ms, 0.1, 798 * ms},
	} {
		if got := validity(c.ttl, c.elapsed, c.factor); got != c.want {
			t.Errorf("validity(%v, %v, %v) = %v, want %v", c.ttl, c.elapsed, c.factor, got, c.want)
		}
	}
}

// "Its entries do not outlive the wait".
func TestTries(t *testing.T) {
	tries := tries{failed: make(map[contender]int)}
	c, other := lock.Claim{Key: "k", Owner: "o"}, lock.Claim{Key: "k", Owner: "p"}
	for i, want := range []bool{false, false, true, false, false, true} {
		if got := tries.count(c, 3); got != want {
			t.Errorf("failure %d: out of tries %v, want %v", i+1, got, want)
		}
	}
	if tries.count(other, 1); len(tries.failed) != 0 {
		t.Errorf("%v is kept", tries.failed)
	}
	tries.count(c, 3)
	tries.count(other, 3)
	if tries.forget(c); len(tries.failed) != 1 {
		t.Errorf("%v is kept, want the other one", tries.failed)
	}
}

// "Each node has a bounded number of requests under way", one after another for
// each owner, and nothing is kept of those that have ended.
func TestNode_Enqueue(t *testing.T) {
	n := newNode(nil)
	var turns []turn
	for range underWay {
		turn, ok := n.enqueue(contender{"k", "o"})
		if !ok || (turn.before == nil) != (len(turns) == 0) {
			t.Fatalf("request %d: ok %v, behind another %v", len(turns), ok, turn.before != nil)
		}
		turns = append(turns, turn)
	}
	if _, ok := n.enqueue(contender{"k", "another"}); ok {
		t.Error("more requests than a node may have")
	}
	for _, turn := range turns {
		turn.wait()
		turn.end()
	}
	if len(n.last) != 0 || n.requests != 0 {
		t.Errorf("%d owners and %d requests are kept", len(n.last), n.requests)
	}
	if turn, ok := n.enqueue(contender{"k", "o"}); !ok || turn.before != nil {
		t.Error("a new request is behind one that has ended")
	}
}

// "Validate reports the first option that cannot work, by name."
func TestOptions_Validate(t *testing.T) {
	for name, o := range map[string]Options{
		"NodeTimeout": {NodeTimeout: -1},
		"Tries":       {Tries: -1},
		"Delay":       {Delay: -1},
		"Jitter":      {Jitter: -1},
		"DriftFactor": {DriftFactor: math.NaN()},
	} {
		err := o.Validate()
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want an error that names it", name, err)
		}
	}
	if err := (Options{}).Validate(); err != nil {
		t.Errorf("zero value: %v", err)
	}
}

// "the time between two attempts: Delay, and a random part of Jitter"
func TestOptions_Pause(t *testing.T) {
	early := 0
	for range 200 {
		d := Options{}.withDefaults().pause()
		if d < 50*time.Millisecond || d >= 250*time.Millisecond {
			t.Errorf("pause %v, want 50 to 250 ms", d)
		}
		if d < 150*time.Millisecond {
			early++
		}
	}
	if early < 20 || early > 180 {
		t.Errorf("%d of 200 pauses in the first half", early)
	}
}

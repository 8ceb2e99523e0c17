package redlock

import "testing"

func TestTally(t *testing.T) {
	for _, c := range []struct {
		tally              tally
		quorum             int
		won, lost, settled bool
	}{
		{tally: tally{nodes: 1, yes: 1}, quorum: 1, won: true, settled: true},
		{tally: tally{nodes: 1, no: 1}, quorum: 1, lost: true, settled: true},
		{tally: tally{nodes: 1, failed: 1}, quorum: 1, settled: true},
		{tally: tally{nodes: 2, yes: 1, no: 1}, quorum: 2, lost: true, settled: true},
		{tally: tally{nodes: 3, yes: 1, no: 1}, quorum: 2},
		{tally: tally{nodes: 4, yes: 2, no: 1}, quorum: 3},
		{tally: tally{nodes: 5, yes: 2, no: 2}, quorum: 3},
		{tally: tally{nodes: 5, yes: 3}, quorum: 3, won: true, settled: true},
		{tally: tally{nodes: 5, yes: 2, failed: 2}, quorum: 3},
		{tally: tally{nodes: 5, yes: 2, failed: 3}, quorum: 3, settled: true},
		{tally: tally{nodes: 5, no: 1, failed: 2}, quorum: 3},
		{tally: tally{nodes: 5, no: 3, failed: 2}, quorum: 3, lost: true, settled: true},
		{tally: tally{nodes: 5, yes: 1, no: 1, failed: 2}, quorum: 3}, // the last one may make it a quorum of answers
		{tally: tally{nodes: 5, failed: 3}, quorum: 3, settled: true},
	} {
		got := c
		got.quorum, got.won, got.lost, got.settled = c.tally.quorum(), c.tally.won(), c.tally.lost(), c.tally.settled()
		if got != c {
			t.Errorf("got %+v, want %+v", got, c)
		}
	}
}

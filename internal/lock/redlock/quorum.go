package redlock

import "time"

// tally counts the answers of nodes to one request.
type tally struct {
	nodes  int
	yes    int
	no     int
	failed int // an error, or no answer in time
}

// quorum is how many nodes have to agree: any two quorums share a node.
func (t tally) quorum() int { return t.nodes/2 + 1 }

// won: a quorum has agreed.
func (t tally) won() bool { return t.yes >= t.quorum() }

// lost: so many refuse that no quorum can ever have agreed.
func (t tally) lost() bool { return t.no > t.nodes-t.quorum() }

// pending is how many may still answer.
func (t tally) pending() int { return t.nodes - t.yes - t.no - t.failed }

// cannotWin: whatever the rest will say, there is no quorum.
func (t tally) cannotWin() bool { return t.yes+t.pending() < t.quorum() }

// cannotLose: whatever the rest will say, too few refuse to be sure.
func (t tally) cannotLose() bool { return t.no+t.pending() <= t.nodes-t.quorum() }

// settled: there is nothing to learn from the rest for one who asks for a key.
func (t tally) settled() bool { return t.won() || t.cannotWin() }

// certain is settled for one who has the key: if it is gone, they want to be
// told so, and not merely that there is no quorum.
func (t tally) certain() bool { return t.won() || t.lost() || t.cannotWin() && t.cannotLose() }

// validity is for how long a grant may be trusted that took so long to get.
func validity(ttl, elapsed time.Duration, driftFactor float64) time.Duration {
	drift := time.Duration(float64(ttl)*driftFactor) + 2*time.Millisecond
	return ttl - elapsed - drift
}

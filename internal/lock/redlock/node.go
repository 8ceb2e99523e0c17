package redlock

import (
	"context"
	_ "embed"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
)

var (
	//go:embed acquire.lua
	acquireSource string
	//go:embed renew.lua
	renewSource string
	//go:embed release.lua
	releaseSource string

	acquireScript = redis.NewScript(acquireSource)
	renewScript   = redis.NewScript(renewSource)
	releaseScript = redis.NewScript(releaseSource)
)

// ScriptName returns what the script with this hash is for, as EVALSHA and a server's slow log have it: acquire, renew
// or release; empty if it is none of this package's.
func ScriptName(hash string) string {
	return map[string]string{
		acquireScript.Hash(): "acquire",
		renewScript.Hash():   "renew",
		releaseScript.Hash(): "release",
	}[hash]
}

// node is one Redis server, and the requests to it that are under way.
type node struct {
	client redis.UniversalClient

	mu   sync.Mutex
	last map[contender]chan struct{} // closed when the latest request of each has ended
}

// contender is an owner that asks for a key.
type contender struct{ key, owner string }

// request is what all nodes are asked.
type request struct {
	script *redis.Script
	claim  lock.Claim
	number int64 // higher for each later one: a late release must not undo a later request
	sent   time.Time
}

// answer is what one node said.
type answer struct {
	node int
	yes  bool
	err  error
}

// send makes a request to each node, in goroutines of their own. They heed no caller's context: the answer of a node
// that may have granted the key is awaited also when its caller has gone, so that a release comes after it.
func (b *Backend) send(script *redis.Script, c lock.Claim) <-chan answer {
	answers := make(chan answer, len(b.nodes)) // it may be that nothing reads them
	r := request{script, c, b.sent.Add(1), time.Now()}
	for i, n := range b.nodes {
		before, end := n.enqueue(contender{c.Key, c.Owner})
		b.work.Go(func() {
			defer end()
			if before != nil {
				<-before
			}
			if script != releaseScript && time.Since(r.sent) >= b.opt.NodeTimeout {
				return // counted as failed already: what is not sent need not be taken back
			}
			yes, err := b.run(n, r)
			answers <- answer{i, yes, err}
		})
	}
	return answers
}

// enqueue puts a request behind the earlier ones of the same contender: it is sent when before is closed, or at once if
// that is nil.
func (n *node) enqueue(c contender) (before chan struct{}, end func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, mine := n.last[c], make(chan struct{})
	n.last[c] = mine
	return before, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		close(mine)
		if n.last[c] == mine {
			delete(n.last, c)
		}
	}
}

// run sends one request to one node.
func (b *Backend) run(n *node, r request) (bool, error) {
	ctx, cancel := context.WithTimeout(b.open, b.opt.NodeTimeout)
	defer cancel()
	keys := []string{prefix + r.claim.Key}
	return r.script.Run(ctx, n.client, keys, r.claim.Owner, r.claim.TTL.Milliseconds(), r.number).Bool()
}

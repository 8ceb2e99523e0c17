package redlock

import (
	"context"
	_ "embed"
	"errors"
	"strings"
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

// Scripts returns what is run on each node.
func Scripts() []lock.Script {
	return []lock.Script{
		{Name: "acquire", Hash: acquireScript.Hash(), Source: acquireSource},
		{Name: "renew", Hash: renewScript.Hash(), Source: renewSource},
		{Name: "release", Hash: releaseScript.Hash(), Source: releaseSource},
	}
}

// node is one Redis server, with the requests to it that are under way.
type node struct {
	client redis.UniversalClient

	mu   sync.Mutex
	last map[contender]chan struct{} // the latest request of each; closed when it has ended
}

// contender is an owner that asks for a key.
type contender struct{ key, owner string }

// answer is the answer of one node.
type answer struct {
	node int
	yes  bool
	err  error
}

// send sends a request to each node, in its own goroutine. The requests do not end with a caller's context: a release
// has to wait for the answer of a node that may have granted the key, even if the caller has gone.
//
// Requests are numbered, higher for each later one: a late release must not undo a later request.
func (b *Backend) send(script *redis.Script, c lock.Claim) <-chan answer {
	answers := make(chan answer, len(b.nodes)) // so that no goroutine blocks if nothing reads them
	number, began := b.sent.Add(1), time.Now()
	for i, n := range b.nodes {
		before, end := n.enqueue(contender{c.Key, c.Owner})
		b.work.Go(func() {
			defer end()
			if before != nil {
				<-before
			}
			if script != releaseScript && time.Since(began) >= b.opt.NodeTimeout {
				return // it counts as failed already; a request that is not sent needs no release
			}
			ctx, cancel := context.WithTimeout(b.open, b.opt.NodeTimeout)
			defer cancel()
			keys := []string{prefix + c.Key}
			yes, err := script.Run(ctx, n.client, keys, c.Owner, c.TTL.Milliseconds(), number).Bool()
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

// holder returns who holds a key on this node.
func (n *node) holder(ctx context.Context, key string) (lock.Holder, error) {
	both := n.client.TxPipeline()
	value, ttl := both.Get(ctx, prefix+key), both.PTTL(ctx, prefix+key)
	if _, err := both.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return lock.Holder{}, err
	}
	_, owner, _ := strings.Cut(value.Val(), " ")
	return lock.Holder{Owner: owner, Remaining: ttl.Val()}, nil
}

package redlock

import (
	"sync"

	"github.com/redis/go-redis/v9"
)

// underWay is how many requests a node may have under way, with those that
// nobody waits for any more. A node that answers in a millisecond never comes
// near it; one that hangs, with a client that does not give up, soon does.
const underWay = 1024

// contender is an owner that asks for a key.
type contender struct{ key, owner string }

// node is one Redis server, and the requests to it that are under way.
type node struct {
	client redis.UniversalClient

	mu       sync.Mutex
	requests int
	last     map[contender]chan struct{} // closed when the latest request of each has ended
}

func newNode(client redis.UniversalClient) *node {
	return &node{client: client, last: make(map[contender]chan struct{})}
}

// enqueue puts a request behind the earlier ones of the same contender: they are
// sent in the order in which enqueue is called. It is not ok if too many are
// under way.
func (n *node) enqueue(c contender) (turn, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.requests == underWay {
		return turn{}, false
	}
	n.requests++
	t := turn{node: n, who: c, before: n.last[c], mine: make(chan struct{})}
	n.last[c] = t.mine
	return t, true
}

// turn is the place of one request.
type turn struct {
	node   *node
	who    contender
	before chan struct{} // nil: nobody is
	mine   chan struct{}
}

// wait returns when the requests before have ended.
func (t turn) wait() {
	if t.before != nil {
		<-t.before
	}
}

// end lets the next one go.
func (t turn) end() {
	t.node.mu.Lock()
	defer t.node.mu.Unlock()
	close(t.mine)
	t.node.requests--
	if t.node.last[t.who] == t.mine {
		delete(t.node.last, t.who)
	}
}

package redlock

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
)

// ErrNoQuorum means that too few nodes answered. It is joined with the errors of the other nodes.
var ErrNoQuorum = errors.New("no quorum of nodes answered")

// Options of a Backend. The zero value works for leases of seconds.
type Options struct {
	// NodeTimeout is the time limit for an answer of a node. It should be far above a round trip, so that a slow answer
	// does not count as an outage. It should be far below a third of the TTL, because a Locker waits a third of the TTL
	// for a renewal. Default 50 ms.
	NodeTimeout time.Duration

	// Delay is the shortest time between two attempts of a waiter. A random time of up to four Delays is added, so that
	// two waiters that split the votes do not collide again. Delay should be many times as long as a request to all
	// nodes. Default 50 ms, a NodeTimeout, so that the votes of a failed attempt are released before the next.
	Delay time.Duration
}

var (
	//go:embed acquire.lua
	acquireSource string
	//go:embed renew.lua
	renewSource string
	//go:embed release.lua
	releaseSource string

	acquireScript = lock.Script{Script: redis.NewScript(acquireSource), Name: "acquire", Source: acquireSource}
	renewScript   = lock.Script{Script: redis.NewScript(renewSource), Name: "renew", Source: renewSource}
	releaseScript = lock.Script{Script: redis.NewScript(releaseSource), Name: "release", Source: releaseSource}
)

// Scripts returns the scripts that run on each node.
func Scripts() []lock.Script { return []lock.Script{acquireScript, renewScript, releaseScript} }

const prefix = "redlock:" // of all keys

// Backend is a lock.Backend over independent Redis servers, 6.2 or later, or Valkey. See the package comment for its
// promises.
type Backend struct {
	nodes []*node
	opt   Options
	sent  atomic.Int64 // number of the latest request

	work sync.WaitGroup  // requests in progress
	open context.Context // ends with Close
	shut context.CancelFunc
}

// New returns a Backend over one client for each node. The nodes must not replicate each other, and should be an odd
// number: four tolerate no more failures than three. The caller closes the clients after the Locker. They should set
// ContextTimeoutEnabled: then requests end with the NodeTimeout. New panics without clients or if a duration is too short.
func New(clients []redis.UniversalClient, o Options) *Backend {
	o.NodeTimeout = cmp.Or(o.NodeTimeout, 50*time.Millisecond)
	o.Delay = cmp.Or(o.Delay, 50*time.Millisecond)
	if len(clients) == 0 || o.NodeTimeout < time.Millisecond || o.Delay < time.Millisecond {
		panic(fmt.Sprintf("redlock: %d clients, %+v: want one client or more, and durations of at least 1ms", len(clients), o))
	}
	b := &Backend{opt: o}
	b.open, b.shut = context.WithCancel(context.Background())
	for _, client := range clients {
		b.nodes = append(b.nodes, &node{client: client, last: make(map[contender]chan struct{})})
	}
	return b
}

// Acquire implements lock.Backend. Held means that a quorum answered, but did not agree: the Backend cannot distinguish a
// holder from another caller that asks at the same time.
func (b *Backend) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	began := time.Now()
	votes, err := b.ask(ctx, acquireScript, c)
	if votes.won() && validity(c.TTL, time.Since(began)) > 0 {
		return lock.Grant{}, nil
	}
	b.send(releaseScript, c) // on all nodes, in the background
	switch {
	case ctx.Err() != nil:
		return lock.Grant{}, fmt.Errorf("redlock: acquire: %w", context.Cause(ctx))
	case votes.answered() >= votes.quorum():
		return lock.Grant{Held: true, Retry: b.opt.Delay + rand.N(4*b.opt.Delay)}, nil
	}
	return lock.Grant{}, fmt.Errorf("redlock: acquire: %w: %w", ErrNoQuorum, err)
}

// Wait implements lock.Backend. It sleeps for g.Retry.
func (b *Backend) Wait(ctx context.Context, _ lock.Claim, g lock.Grant) error {
	select {
	case <-time.After(g.Retry):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Renew implements lock.Backend. The fence is 0. ErrNoQuorum: too few nodes answered, and the lease may still exist.
func (b *Backend) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	began := time.Now()
	votes, err := b.ask(ctx, renewScript, c)
	if votes.won() && validity(c.TTL, time.Since(began)) <= 0 {
		return 0, fmt.Errorf("redlock: renew: %w: nothing is left of the TTL %v", ErrNoQuorum, c.TTL)
	}
	return 0, result("renew", votes, err)
}

// Release implements lock.Backend on all nodes, even after a quorum has answered. ErrNoQuorum: too few nodes answered.
func (b *Backend) Release(ctx context.Context, c lock.Claim) error {
	votes, err := b.ask(ctx, releaseScript, c)
	return result("release", votes, err)
}

// Holder implements lock.Backend. It returns the owner that holds the key on a quorum; Since is not known. ErrNoQuorum: too
// few nodes answered.
func (b *Backend) Holder(ctx context.Context, key string) (lock.Holder, error) {
	voting, cancel := context.WithTimeout(ctx, b.opt.NodeTimeout)
	defer cancel()
	answers, votes := make(chan answer, len(b.nodes)), make(chan lock.Holder, len(b.nodes))
	for i, n := range b.nodes {
		b.work.Go(func() {
			h, err := n.holder(voting, key)
			if err == nil {
				votes <- h
			}
			answers <- answer{i, err == nil, err}
		})
	}
	t, err := b.count(ctx, answers, func(t tally) bool { return t.pending() == 0 })
	left := map[string][]time.Duration{} // by owner; the empty owner: free
	for range t.yes {
		h := <-votes
		left[h.Owner] = append(left[h.Owner], h.Remaining)
	}
	for owner, each := range left {
		switch {
		case owner != "" && len(each) >= t.quorum():
			return lock.Holder{Owner: owner, Remaining: slices.Min(each)}, nil
		case owner != "" && len(each)+t.failed+t.pending() >= t.quorum(): // the owner may also hold the other nodes
			return lock.Holder{}, fmt.Errorf("redlock: holder: %w", errors.Join(ErrNoQuorum, err))
		}
	}
	return lock.Holder{}, result("holder", t, err)
}

// Evict implements lock.Backend. It renews the lease with a TTL of zero.
func (b *Backend) Evict(ctx context.Context, key, owner string) error {
	votes, err := b.ask(ctx, renewScript, lock.Claim{Key: key, Owner: owner})
	return result("evict", votes, err)
}

// result returns the error of a renewal or a release.
func result(what string, votes tally, err error) error {
	switch {
	case votes.won():
		return nil
	case votes.lost():
		return lock.ErrLost
	}
	return fmt.Errorf("redlock: %s: %w", what, errors.Join(ErrNoQuorum, err))
}

// Close waits for the requests in progress, such as releases in the background, for two NodeTimeouts at most, and then ends
// them. A client that ignores contexts may end them later. The clients stay open.
func (b *Backend) Close() error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.work.Wait()
	}()
	defer b.shut()
	select {
	case <-done:
	case <-time.After(2 * b.opt.NodeTimeout):
	}
	return nil
}

// ask sends a request to all nodes at once, and counts their answers until there are enough.
func (b *Backend) ask(ctx context.Context, script lock.Script, c lock.Claim) (tally, error) {
	return b.count(ctx, b.send(script, c), tally.settled)
}

// count counts the answers of nodes until there are enough, the NodeTimeout has passed, or ctx ends. The requests go on
// after it returns. The error joins the errors of the nodes that failed or did not answer.
func (b *Backend) count(ctx context.Context, answers <-chan answer, enough func(tally) bool) (tally, error) {
	timeout := time.NewTimer(b.opt.NodeTimeout)
	defer timeout.Stop()
	t := tally{nodes: len(b.nodes)}
	var failures []error
	for !enough(t) {
		select {
		case a := <-answers:
			switch {
			case a.err != nil:
				t.failed++
				failures = append(failures, fmt.Errorf("node %d: %w", a.node, a.err))
			case a.yes:
				t.yes++
			default:
				t.no++
			}
		case <-timeout.C:
			if len(answers) > 0 { // the answers came in time, but this process is slow
				timeout.Reset(0)
				continue
			}
			failures = append(failures, fmt.Errorf("%d nodes: no answer in time", t.pending()))
			t.failed += t.pending()
		case <-ctx.Done():
			return t, context.Cause(ctx)
		}
	}
	return t, errors.Join(failures...)
}

// tally counts the answers of nodes to one request.
type tally struct {
	nodes  int
	yes    int
	no     int
	failed int // an error, or no answer in time
}

// quorum returns the number of nodes that have to agree. Any two quorums share a node.
func (t tally) quorum() int { return t.nodes/2 + 1 }

func (t tally) answered() int { return t.yes + t.no }

// pending returns the number of nodes that may still answer.
func (t tally) pending() int { return t.nodes - t.answered() - t.failed }

// won reports whether a quorum has agreed.
func (t tally) won() bool { return t.yes >= t.quorum() }

// lost reports whether so many nodes refuse that no quorum can ever have agreed.
func (t tally) lost() bool { return t.no > t.nodes-t.quorum() }

// settled reports whether the missing answers cannot change or clarify who holds the key.
func (t tally) settled() bool {
	cannotWin := t.yes+t.pending() < t.quorum()
	unreachable := t.failed > t.nodes-t.quorum() // too few nodes can answer for a quorum
	return t.won() || cannotWin && (t.answered() >= t.quorum() || unreachable)
}

// validity returns the time for which a grant may be trusted if the request took the time elapsed. The clocks of nodes
// and clients may differ in speed by 1 %, and expiry by 2 ms.
func validity(ttl, elapsed time.Duration) time.Duration {
	return ttl - elapsed - ttl/100 - 2*time.Millisecond
}

// node is one Redis server, with the requests to it that are in progress.
type node struct {
	client redis.UniversalClient

	mu   sync.Mutex
	last map[contender]chan struct{} // the latest request of each contender; closed when it has ended
}

// contender is an owner that asks for a key.
type contender struct{ key, owner string }

type answer struct {
	node int
	yes  bool
	err  error
}

// send sends a request to each node, in a goroutine of its own. The requests do not end with the caller's context: a
// release must wait for the answer of a node that may have granted the key, even if the caller has given up.
//
// Each later request has a higher number, because a late release must not undo a later request.
func (b *Backend) send(script lock.Script, c lock.Claim) <-chan answer {
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
				return // it already counts as failed, and a request that was not sent needs no release
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

// enqueue puts a request behind the contender's earlier requests. The request waits until before is closed, unless before
// is nil.
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

func (n *node) holder(ctx context.Context, key string) (lock.Holder, error) {
	both := n.client.TxPipeline()
	value, ttl := both.Get(ctx, prefix+key), both.PTTL(ctx, prefix+key)
	if _, err := both.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return lock.Holder{}, err
	}
	_, owner, _ := strings.Cut(value.Val(), " ")
	return lock.Holder{Owner: owner, Remaining: ttl.Val()}, nil
}

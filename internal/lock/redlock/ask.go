package redlock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
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

// answer is what one node said.
type answer struct {
	node int
	yes  bool
	err  error
}

// ask puts a request to all nodes at once, and counts their answers until enough
// says so, the NodeTimeout has passed, or ctx ends. The requests go on without
// it. The error tells what is known of nodes that did not answer.
func (b *Backend) ask(ctx context.Context, script *redis.Script, c lock.Claim, enough func(tally) bool) (tally, error) {
	answers := b.send(script, c)
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
			if len(answers) > 0 { // in time; it is this process that is slow
				timeout.Reset(0)
				continue
			}
			failures = append(failures, fmt.Errorf("%d nodes: %w", t.pending(), errSilent))
			t.failed += t.pending()
		case <-ctx.Done():
			return t, context.Cause(ctx)
		}
	}
	return t, errors.Join(failures...)
}

// send makes a request to each node, in goroutines that nobody has to wait for.
// They heed no caller's context: the answer of a node that may have granted the
// key is awaited even if nobody wants it any more, so that a release comes after
// it. Where the NodeTimeout ends even that, its number tells a node what it comes
// after.
func (b *Backend) send(script *redis.Script, c lock.Claim) <-chan answer {
	answers := make(chan answer, len(b.nodes)) // nobody may be left to read them
	number := b.sent.Add(1)
	for i, n := range b.nodes {
		turn, ok := n.enqueue(contender{c.Key, c.Owner})
		if !ok {
			answers <- answer{i, false, errBusy}
			continue
		}
		sent := time.Now()
		b.work.Go(func() {
			defer turn.end()
			if turn.wait(); script != releaseScript && time.Since(sent) >= b.opt.NodeTimeout {
				return // taken for silent already: what is not sent need not be taken back
			}
			yes, err := b.run(n, script, c, number)
			answers <- answer{i, yes, err}
			if script == releaseScript && err != nil {
				b.insist(n, c, number, sent)
			}
		})
	}
	return answers
}

// run sends one request to one node.
func (b *Backend) run(n *node, script *redis.Script, c lock.Claim, number int64) (bool, error) {
	ctx, cancel := context.WithTimeout(b.open, b.opt.NodeTimeout)
	defer cancel()
	return script.Run(ctx, n.client, []string{b.opt.Prefix + c.Key}, c.Owner, c.TTL.Milliseconds(), number).Bool()
}

// insist repeats a release that a node did not answer, for as long as the node
// would keep the key: one that comes back after a moment is not blocked by what
// it heard last.
func (b *Backend) insist(n *node, c lock.Claim, number int64, since time.Time) {
	const most = time.Second
	for nap := b.opt.NodeTimeout; time.Since(since) < c.TTL; nap = min(2*nap, most) {
		select {
		case <-time.After(nap):
		case <-b.open.Done():
			return
		}
		if _, err := b.run(n, releaseScript, c, number); err == nil {
			return
		}
	}
}

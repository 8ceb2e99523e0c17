package zklock

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
)

// ticket identifies a place.
type ticket struct{ key, owner string }

// place is an owner's place in the queue of a key. The Backend keeps it while it may have a node, and while calls are
// under way. These run one after the other: the library's calls cannot be cancelled, and the next call has to wait for one whose
// caller has gone.
type place struct {
	ticket
	last chan struct{} // closed when the latest call has ended; guarded by Backend.mu

	node // belongs to the call that runs
}

// node is what is known of a place's node. It holds for one session.
type node struct {
	session int64
	path    string // empty: none known
	doubt   bool   // it may exist, and its name was lost with the answer
	held    bool   // the key was granted
	before  string // path of the node before it
}

// do runs a call of the library, which has no time limit, after the earlier calls of the same claim. If ctx ends first,
// do returns; the call goes on.
func do[T any](ctx context.Context, b *Backend, c lock.Claim, call func(*place) (T, error)) (T, error) {
	var value, none T
	var err error
	ended := make(chan struct{})
	b.mu.Lock()
	if b.open.Err() != nil {
		b.mu.Unlock()
		return none, lock.ErrClosed
	}
	t := ticket{c.Key, c.Owner}
	p := b.places[t]
	if p == nil {
		p = &place{ticket: t}
		b.places[t] = p
	}
	before := p.last
	p.last = ended
	b.work.Go(func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		value, err = call(p)
		b.forget(p, ended)
	})
	b.mu.Unlock()
	select {
	case <-ended:
		return value, err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// forget removes a place that has no node, unless another call has come behind the one that ends.
func (b *Backend) forget(p *place, ended chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.last == ended && p.path == "" && !p.doubt {
		delete(b.places, p.ticket)
	}
}

// Release implements lock.Backend. If ctx ends before the server has answered, the Backend goes on in the background
// until the node or its session is gone: a node that stays would block the key for as long as the process lives.
func (b *Backend) Release(ctx context.Context, c lock.Claim) error {
	_, err := do(ctx, b, c, func(p *place) (none struct{}, err error) { return none, b.remove(p) })
	return err
}

// remove deletes the place's node, and tries again after a failure until it is gone. ErrLost: it was not the holder's.
func (b *Backend) remove(p *place) error {
	sent := false // a deletion was sent whose answer was lost
	for nap := 10 * time.Millisecond; ; nap = min(2*nap, time.Second) {
		err := b.delete(p, sent)
		if err == nil || errors.Is(err, lock.ErrLost) {
			p.node = node{}
			return err
		}
		sent = sent || p.path != ""
		select {
		case <-time.After(nap):
		case <-b.open.Done():
			return lock.ErrClosed
		}
	}
}

func (b *Backend) delete(p *place, sent bool) error {
	if b.now().id != p.session {
		return lock.ErrLost
	}
	if p.doubt {
		if err := b.find(p); err != nil {
			return err
		}
	}
	if p.path == "" {
		return lock.ErrLost
	}
	err := b.deleteNode(p.path)
	if sent && errors.Is(err, zk.ErrNoNode) {
		err = nil // it was that deletion
	}
	if errors.Is(err, zk.ErrNoNode) || err == nil && !p.held {
		return lock.ErrLost
	}
	return err
}

// errChanged means that another client, or the server, has removed a node in the meantime.
var errChanged = errors.New("node removed by another client")

// retryable reports whether a request may be sent again after this error: it had no effect, or whether it had one is
// unknown.
func retryable(err error) bool {
	unknown := []error{
		zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved,
		errChanged, io.EOF, io.ErrUnexpectedEOF,
	}
	if slices.ContainsFunc(unknown, func(known error) bool { return errors.Is(err, known) }) {
		return true
	}
	_, network := errors.AsType[net.Error](err)
	return network
}

package zklock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
)

// Acquire implements lock.Backend. It goes on after lost connections and sessions for as long as ctx allows.
func (b *Backend) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	return do(ctx, b, c, func(p *place) (lock.Grant, error) {
		grant, err := b.ask(ctx, p, c)
		for retryable(err) && ctx.Err() == nil && b.open.Err() == nil {
			grant, err = b.ask(ctx, p, c)
		}
		if err == nil && grant.Held && !c.Queue {
			if err = b.remove(p); errors.Is(err, lock.ErrLost) {
				err = nil
			}
		}
		return grant, err
	})
}

// ask goes through the recipe once: it enters the queue, and looks which node is first.
func (b *Backend) ask(ctx context.Context, p *place, c lock.Claim) (lock.Grant, error) {
	s, err := b.awaitSession(ctx)
	if err == nil {
		err = s.checkTTL(c.TTL)
	}
	if err == nil {
		err = b.authenticate()
	}
	if err != nil {
		return lock.Grant{}, err
	}
	if p.session != s.id { // the nodes of the former session are gone
		p.node = node{session: s.id}
	}
	if p.doubt {
		if err := b.find(p); err != nil {
			return lock.Grant{}, err
		}
	}
	created := p.path == ""
	if created {
		if err := b.create(p); err != nil {
			return lock.Grant{}, err
		}
	}
	names, changed, err := b.queue(p.key)
	if err != nil {
		return lock.Grant{}, err
	}
	switch mine := slices.Index(names, path.Base(p.path)); {
	case mine < 0:
		p.node = node{session: s.id}
		return lock.Grant{}, errChanged
	case mine > 0:
		p.held, p.before = false, b.dir(p.key)+"/"+names[mine-1]
		return lock.Grant{Held: true, Retry: c.TTL}, nil
	}
	return b.grant(p, s, created, changed)
}

// grant makes the first owner in the queue the holder, on two conditions. The session was alive after the request was
// sent, which only a write proves; and the fence is higher than all earlier ones. Creating the node was such a write,
// and the zxid of the queue's last change is at least as high. The next holder's zxid is higher, because the queue has
// changed by then. If an earlier request created the node, touch does the write.
func (b *Backend) grant(p *place, s session, created bool, changed int64) (lock.Grant, error) {
	fence, err := fenceOf(changed)
	if !created {
		fence, err = b.touch(p)
	}
	switch {
	case errors.Is(err, lock.ErrLost):
		p.node = node{session: s.id}
		return lock.Grant{}, errChanged
	case err != nil:
		return lock.Grant{}, err
	case b.now() != s: // the answers may come from two sessions
		return lock.Grant{}, zk.ErrSessionExpired
	}
	p.held, p.before = true, ""
	return lock.Grant{Fence: fence}, nil
}

// Wait implements lock.Backend. It returns when the node before the owner's is gone, which wakes no other waiter.
func (b *Backend) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	gone, err := do(ctx, b, c, b.watch)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, zk.ErrNoNode), retryable(err):
		return nil
	case err != nil:
		return err
	}
	select {
	case <-gone:
	case <-time.After(g.Retry + rand.N(g.Retry/10+5*time.Millisecond)):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// watch returns a channel that is closed when the node before the place's, or the session, is gone. It watches the
// children of that node: there are never any, but a watch of the node itself would also fire at each renewal.
func (b *Backend) watch(p *place) (gone <-chan zk.Event, err error) {
	if p.before == "" {
		return nil, zk.ErrNoNode
	}
	_, _, gone, err = b.conn.ChildrenW(p.before)
	b.trace("watch", p.before, "OK", err)
	if err == nil && b.now().id != p.session { // the place's node has gone with the session
		err = zk.ErrSessionExpired
	}
	return gone, err
}

// Renew implements lock.Backend. Each renewal raises the fence. ErrFence: c.Fence is above the server's counter, and no
// fence can be raised beyond it.
func (b *Backend) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	return do(ctx, b, c, func(p *place) (int64, error) {
		s := b.now()
		if !p.held || p.session != s.id {
			return 0, lock.ErrLost
		}
		if err := s.checkTTL(c.TTL); err != nil {
			return 0, err
		}
		fence, err := b.touch(p)
		if err == nil && c.Fence > fence {
			return 0, fmt.Errorf("%w: %d is above the server's counter %d", ErrFence, c.Fence, fence)
		}
		return fence, err
	})
}

// Release implements lock.Backend. If ctx ends before the server has answered, the Backend goes on in the background
// until the node or its session is gone: a node that stays would block the key for as long as the process lives.
func (b *Backend) Release(ctx context.Context, c lock.Claim) error {
	_, err := do(ctx, b, c, func(p *place) (none struct{}, err error) { return none, b.remove(p) })
	return err
}

// remove deletes the place's node, and tries again until the node is gone. ErrLost: the node did not hold the key.
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
		err = nil // the earlier deletion has deleted it
	}
	if errors.Is(err, zk.ErrNoNode) || err == nil && !p.held {
		return lock.ErrLost
	}
	return err
}

// ticket identifies a place.
type ticket struct{ key, owner string }

// place is an owner's place in the queue of a key. The Backend keeps a place while it may have a node, and while calls
// are in progress. Its calls run one after the other: the library's calls cannot be cancelled, so that a call has to
// wait even for a call whose caller has given up.
type place struct {
	ticket
	last chan struct{} // closed when the latest call has ended; guarded by Backend.mu

	node // belongs to the running call
}

// node is the knowledge of a place's node. It is valid for one session.
type node struct {
	session int64
	path    string // empty if no node is known
	doubt   bool   // the node may exist: its name was lost with the answer
	held    bool   // the key was granted
	before  string // path of the node before this one
}

// do runs a call of the library, which has no time limit, after the earlier calls of the same claim. If ctx ends first, do
// returns, and the call goes on.
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

// forget removes a place that has no node, unless another call waits behind the one that ends.
func (b *Backend) forget(p *place, ended chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.last == ended && p.path == "" && !p.doubt {
		delete(b.places, p.ticket)
	}
}

// errChanged means that another client, or the server, has removed a node meanwhile.
var errChanged = errors.New("node removed by another client")

// retryable reports whether a request with this error may be sent again: it had no effect, or its effect is unknown.
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

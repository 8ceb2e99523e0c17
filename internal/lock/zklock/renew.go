package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
)

// Renew implements lock.Backend. Each renewal raises the fence. It can be raised
// to what the server has counted to, no further: ErrFence.
func (b *Backend) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	p := b.known(c)
	if p == nil {
		return 0, lock.ErrLost
	}
	fence, err := do(ctx, b, p, func() (int64, error) { return b.renew(p, c) })
	if err != nil && !errors.Is(err, lock.ErrLost) {
		return 0, fmt.Errorf("zookeeper: renew: %w", err)
	}
	return fence, err
}

func (b *Backend) renew(p *place, c lock.Claim) (int64, error) {
	s := b.sessions.now()
	if !p.held || p.session != s.id {
		return 0, lock.ErrLost
	}
	if err := s.bears(c.TTL); err != nil {
		return 0, err
	}
	zxid, err := b.touch(p)
	if err != nil {
		return 0, err
	}
	fence, err := fenceOf(zxid)
	if err == nil && c.Fence > fence {
		err = fmt.Errorf("%w: %d is above %d, and no fence can be raised beyond", ErrFence, c.Fence, fence)
	}
	if err != nil {
		return 0, err
	}
	return fence, nil
}

// touch writes nothing into the place's node, and returns the zxid of that. A
// read would be cheaper and prove nothing: a server that is cut off from the
// others goes on answering reads for a while, and knows neither that the session
// has ended nor that the node is gone. A write goes through the leader and most
// of the servers, which check both.
func (b *Backend) touch(p *place) (zxid int64, err error) {
	stat, err := b.conn.Set(p.path, nil, -1)
	switch {
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrSessionExpired):
		return 0, lock.ErrLost
	case err != nil:
		return 0, err
	// The write may have been sent in a later session, to a node that the former
	// one has left and that is about to go.
	case stat.EphemeralOwner != p.session, b.sessions.now().id != p.session:
		return 0, lock.ErrLost
	}
	return stat.Mzxid, nil
}

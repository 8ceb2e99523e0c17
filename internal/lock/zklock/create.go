package zklock

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"
)

// create puts the owner's node at the end of the line. If the connection is lost
// before the answer, the node may be there or not: the place is then in doubt
// until find has looked.
func (b *Backend) create(p *place) error {
	dir := b.dir(p.key)
	const tries = 5 // the server may remove an empty parent at any time
	for range tries {
		p.doubt = true
		made, err := b.conn.Create(dir+"/"+escape(p.owner)+"-", nil, zk.FlagEphemeralSequential, b.opt.ACL)
		if now := b.sessions.now().id; now != p.session {
			// The library keeps what it could not send for the next session. If
			// there is one, the node may be in that.
			p.enter(now)
			p.doubt = true
			return zk.ErrSessionExpired
		}
		switch {
		case err == nil:
			p.path, p.doubt = made, false
			return b.checkSequence(p)
		case errors.Is(err, zk.ErrNoNode):
			p.doubt = false
			if err := b.makeDir(dir); err != nil {
				return err
			}
		default:
			p.doubt = again(err)
			return err
		}
	}
	return fmt.Errorf("create in %s: %w", dir, zk.ErrNoNode)
}

// find ends a doubt: it looks whether the owner has a node. Sync first: a
// creation that was under way to the leader over the lost connection shows on
// another server only when that has caught up.
func (b *Backend) find(p *place) error {
	dir := b.dir(p.key)
	if _, err := b.conn.Sync(dir); err != nil {
		return err
	}
	children, _, err := b.conn.Children(dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	mine := ""
	for _, name := range ownedBy(children, p.owner) {
		exists, stat, err := b.conn.Exists(dir + "/" + name)
		if err != nil {
			return err
		}
		if exists && stat.EphemeralOwner == p.session { // not one that is about to go with a former session
			mine = dir + "/" + name
		}
	}
	p.path, p.doubt = mine, false
	return nil
}

// makeDir makes a key's node, and the root above it. The key's is a container:
// the server removes it some time after its last child.
func (b *Backend) makeDir(dir string) error {
	_, err := b.conn.CreateContainer(dir, nil, zk.FlagContainer, b.opt.ACL)
	if errors.Is(err, zk.ErrNoNode) {
		if err := b.makeRoot(); err != nil {
			return err
		}
		_, err = b.conn.CreateContainer(dir, nil, zk.FlagContainer, b.opt.ACL)
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

func (b *Backend) makeRoot() error {
	made := ""
	for _, name := range strings.Split(b.opt.Root, "/")[1:] {
		made += "/" + name
		_, err := b.conn.Create(made, nil, zk.FlagPersistent, b.opt.ACL)
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// checkSequence refuses a node whose number comes close to the largest. The
// line empties then, since nobody gets in, and its node can be removed.
func (b *Backend) checkSequence(p *place) error {
	mine, ok := parse(path.Base(p.path))
	if ok && mine.sequence <= b.lastSequence {
		return nil
	}
	if err := b.conn.Delete(p.path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	p.path = ""
	err := b.conn.Delete(b.dir(p.key), -1)
	if err != nil && !errors.Is(err, zk.ErrNotEmpty) && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return ErrSequence
}

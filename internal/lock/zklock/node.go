package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
)

// create adds the owner's node at the end of the queue. If the connection is lost before the answer, the node may exist
// or not: the place is in doubt until find has looked.
func (b *Backend) create(p *place) error {
	dir := b.dir(p.key)
	wanted := dir + "/" + escape(p.owner) + "-"
	made, err := b.conn.Create(wanted, nil, zk.FlagEphemeralSequential, b.acl)
	b.trace("create", wanted, path.Base(made), err)
	now := b.now().id
	p.doubt = retryable(err) && !errors.Is(err, zk.ErrNoServer) // ErrNoServer: the request was never sent
	switch {
	case now != p.session:
		// The library sends in the next session what it could not send before, so the node may belong to the next session.
		p.node = node{session: now, doubt: true}
		return zk.ErrSessionExpired
	case err == nil:
		p.path = made
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return cmp.Or(b.makeDir(dir), errChanged)
	}
	return err
}

// find looks for the owner's node, and so ends a doubt.
func (b *Backend) find(p *place) error {
	names, err := b.latest(p.key)
	if err != nil {
		return err
	}
	for _, name := range names {
		if ownerOf(name) != escape(p.owner) {
			continue
		}
		node := b.dir(p.key) + "/" + name
		exists, stat, err := b.conn.Exists(node)
		if err != nil {
			return err
		}
		if exists && stat.EphemeralOwner == p.session { // a node of a former session will be deleted soon
			p.path = node
		}
	}
	p.doubt = false
	return nil
}

// Holder implements lock.Backend. Since is the time when the holder entered the queue. Remaining is not known, because
// a lease lasts as long as its session.
func (b *Backend) Holder(ctx context.Context, key string) (lock.Holder, error) {
	return do(ctx, b, lock.Claim{Key: key}, func(*place) (h lock.Holder, err error) {
		names, err := b.latest(key)
		if err != nil || len(names) == 0 {
			return h, err
		}
		exists, stat, err := b.conn.Exists(b.dir(key) + "/" + names[0])
		if err != nil || !exists {
			return h, err
		}
		h.Owner, err = url.PathUnescape(ownerOf(names[0]))
		h.Since = time.UnixMilli(stat.Ctime)
		return h, err
	})
}

// Evict implements lock.Backend. It deletes the owner's node.
func (b *Backend) Evict(ctx context.Context, key, owner string) error {
	_, err := do(ctx, b, lock.Claim{Key: key}, func(*place) (none struct{}, err error) {
		names, err := b.latest(key)
		switch {
		case err != nil:
			return none, err
		case len(names) == 0 || ownerOf(names[0]) != escape(owner):
			return none, lock.ErrLost
		}
		err = b.deleteNode(b.dir(key) + "/" + names[0])
		if errors.Is(err, zk.ErrNoNode) {
			err = lock.ErrLost
		}
		return none, err
	})
	return err
}

// queue returns the names of the nodes in a key's queue, in order, and the zxid of the queue's last change.
func (b *Backend) queue(key string) (names []string, changed int64, err error) {
	names, stat, err := b.conn.Children(b.dir(key))
	b.trace("children", b.dir(key), strings.Join(names, " "), err)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !legal.MatchString(name) })
	slices.SortFunc(names, func(x, y string) int { return cmp.Compare(x[len(x)-digits:], y[len(y)-digits:]) })
	return names, stat.Pzxid, nil
}

// latest is like queue, but after all changes that the leader has confirmed, or that were sent over a lost connection.
// Without Sync, a server may not have these changes yet.
func (b *Backend) latest(key string) ([]string, error) {
	if err := b.authenticate(); err != nil {
		return nil, err
	}
	if _, err := b.conn.Sync(b.dir(key)); err != nil {
		return nil, err
	}
	names, _, err := b.queue(key)
	return names, err
}

// makeDir creates a key's node, or the root above it if the root is missing. The key's node is a container: the server
// removes it some time after its last child.
func (b *Backend) makeDir(dir string) error {
	_, err := b.conn.CreateContainer(dir, nil, zk.FlagContainer, b.acl)
	if errors.Is(err, zk.ErrNoNode) {
		made := ""
		for _, name := range strings.Split(b.opt.Root, "/")[1:] {
			made += "/" + name
			_, err = b.conn.Create(made, nil, zk.FlagPersistent, b.acl)
			b.trace("create", made, name, err)
			if err != nil && !errors.Is(err, zk.ErrNodeExists) {
				return err
			}
		}
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

func (b *Backend) deleteNode(node string) error {
	err := b.conn.Delete(node, -1) // whatever its data
	b.trace("delete", node, "OK", err)
	return err
}

// touch writes empty data to the place's node, and returns the fence of the write. A read would prove nothing: a server
// that is cut off from the others answers reads for a while, although the session may have ended and the node be gone.
// A write passes the leader and a majority of the servers, which check both.
func (b *Backend) touch(p *place) (fence int64, err error) {
	stat, err := b.conn.Set(p.path, nil, -1)
	b.trace("set", p.path, "OK", err)
	switch {
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrSessionExpired):
		return 0, lock.ErrLost
	case err != nil:
		return 0, err
	// The write may have been sent in a later session, to a node of a former session that will be deleted soon.
	case stat.EphemeralOwner != p.session, b.now().id != p.session:
		return 0, lock.ErrLost
	}
	return fenceOf(stat.Mzxid)
}

// handoffs is the number of low bits of a fence with which the Locker numbers its hand-offs.
const handoffs = 16

// fenceOf makes a fence of a zxid, the number that ZooKeeper gives to each write. The upper half of a zxid counts the
// elections of a leader: 32,767 elections fit.
func fenceOf(zxid int64) (int64, error) {
	if zxid <= 0 || zxid > math.MaxInt64>>handoffs {
		return 0, fmt.Errorf("%w: zxid %#x", ErrFence, zxid)
	}
	return zxid << handoffs, nil
}

// escape makes any text a legal name of a node. No two texts have the same name.
func escape(text string) string {
	return cmp.Or(strings.ReplaceAll(url.PathEscape(text), ".", "%2E"), "%") // "." and ".." are not names
}

// legal matches the name of a node, <owner>-<number>: the owner is escaped, and may contain hyphens; the server appends
// the number.
var legal = regexp.MustCompile(`^.+-\d{10}$`)

const digits = 10

func ownerOf(name string) string { return name[:len(name)-digits-1] }

package zklock

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
)

var everybody = zk.WorldACL(zk.PermAll)

// create puts the owner's node at the end of the line. If the connection is lost before the answer, the node may be
// there or not: the place is then in doubt until find has looked.
func (b *Backend) create(p *place) error {
	dir := b.dir(p.key)
	const tries = 5 // the server may remove an empty parent at any time
	for range tries {
		p.doubt = true
		made, err := b.conn.Create(dir+"/"+escape(p.owner)+"-", nil, zk.FlagEphemeralSequential, everybody)
		if now := b.sessions.now().id; now != p.session {
			// The library keeps what it could not send for the next session. If there is one, the node may be in that.
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

// find ends a doubt: it looks whether the owner has a node. Sync first: a creation that was under way to the leader
// over the lost connection shows on another server only when that has caught up.
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

// makeDir makes a key's node, and the root above it. The key's is a container: the server removes it some time after
// its last child.
func (b *Backend) makeDir(dir string) error {
	_, err := b.conn.CreateContainer(dir, nil, zk.FlagContainer, everybody)
	if errors.Is(err, zk.ErrNoNode) {
		if err := b.makeRoot(); err != nil {
			return err
		}
		_, err = b.conn.CreateContainer(dir, nil, zk.FlagContainer, everybody)
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
		_, err := b.conn.Create(made, nil, zk.FlagPersistent, everybody)
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// checkSequence refuses a node whose number comes close to the largest. The line empties then, since no owner gets in,
// and its node can be removed.
func (b *Backend) checkSequence(p *place) error {
	if mine, ok := parse(path.Base(p.path)); ok && mine.sequence <= b.lastSequence {
		return nil
	}
	if err := b.conn.Delete(p.path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	p.path = ""
	_ = b.conn.Delete(b.dir(p.key), -1) // fails while others are in line; the last one removes it
	return ErrSequence
}

// touch writes nothing into the place's node, and returns the zxid of that. A read would be cheaper and prove nothing:
// a server that is cut off from the others goes on answering reads for a while, and knows neither that the session has
// ended nor that the node is gone. A write goes through the leader and most of the servers, which check both.
func (b *Backend) touch(p *place) (zxid int64, err error) {
	stat, err := b.conn.Set(p.path, nil, -1)
	switch {
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrSessionExpired):
		return 0, lock.ErrLost
	case err != nil:
		return 0, err
	// The write may have been sent in a later session, to a node that the former one has left and that is about to go.
	case stat.EphemeralOwner != p.session, b.sessions.now().id != p.session:
		return 0, lock.ErrLost
	}
	return stat.Mzxid, nil
}

// handoffs is how many bits of a fence are left to the Locker, which numbers its hand-offs with them.
const handoffs = 16

// fenceOf makes a fence of a zxid, the number that ZooKeeper gives each write. Its upper half counts the elections of a
// leader: 32,767 of them fit.
func fenceOf(zxid int64) (int64, error) {
	if zxid <= 0 || zxid > math.MaxInt64>>handoffs {
		return 0, fmt.Errorf("%w: zxid %#x", ErrFence, zxid)
	}
	return zxid << handoffs, nil
}

// escape makes any text one legal name of a node, and no two texts the same one.
func escape(text string) string {
	return cmp.Or(strings.ReplaceAll(url.PathEscape(text), ".", "%2E"), "%") // "." and ".." are no names
}

// digits is how many ZooKeeper writes behind the name of a sequential node.
const digits = 10

// entry is one node of a key's line: <owner>-<sequence>.
type entry struct {
	owner    string // escaped
	sequence int32
}

// parse takes a node's name apart from behind, since an owner may contain anything. It refuses names that no Backend
// makes.
func parse(name string) (entry, bool) {
	at := len(name) - digits - 1
	if at < 1 || name[at] != '-' {
		return entry{}, false
	}
	sequence, err := strconv.ParseUint(name[at+1:], 10, 31)
	if err != nil {
		return entry{}, false
	}
	return entry{owner: name[:at], sequence: int32(sequence)}, true
}

// ownedBy returns the owner's nodes among the children of a key's node. The whole owner is compared.
func ownedBy(children []string, owner string) (names []string) {
	owner = escape(owner)
	for _, name := range children {
		if e, legal := parse(name); legal && e.owner == owner {
			names = append(names, name)
		}
	}
	return names
}

// before returns the node that stands in line right before mine, "" if mine is the first. Without mine, ok is false.
func before(children []string, mine string) (next string, ok bool) {
	me, legal := parse(mine)
	if !legal || !slices.Contains(children, mine) {
		return "", false
	}
	last := int32(-1)
	for _, name := range children {
		if e, legal := parse(name); legal && e.sequence < me.sequence && e.sequence > last {
			next, last = name, e.sequence
		}
	}
	return next, true
}

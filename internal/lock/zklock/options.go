package zklock

import (
	"cmp"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Options of a Backend. The zero value is a good one.
type Options struct {
	// SessionTimeout is what the server is asked for. It is how long a crashed
	// holder blocks its keys, and at least three times the Locker's TTL. A server
	// grants between 2 and 20 of its ticks, by default 4 s to 40 s, and not what
	// is beyond. Default 30 s.
	SessionTimeout time.Duration

	// Root is the path of the node below which each key has its own. It is made
	// where it is missing. Lockers that are to exclude each other use the same.
	// Default "/locks".
	Root string

	// ACL is set on each node that is made. Default: everybody may do everything.
	ACL []zk.ACL

	// Dial opens a connection to one server, over TLS for example. Default
	// net.DialTimeout.
	Dial zk.Dialer
}

// Validate reports the first option that cannot work, by name.
func (o Options) Validate() error {
	switch d := o.withDefaults(); {
	case d.SessionTimeout < time.Millisecond:
		return fmt.Errorf("zklock: SessionTimeout %v: want at least 1ms", o.SessionTimeout)
	case !legalRoot(d.Root):
		return fmt.Errorf("zklock: Root %q: want an absolute path without a slash at its end", o.Root)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.SessionTimeout = cmp.Or(o.SessionTimeout, 30*time.Second)
	o.Root = cmp.Or(o.Root, "/locks")
	if len(o.ACL) == 0 {
		o.ACL = zk.WorldACL(zk.PermAll)
	}
	if o.Dial == nil {
		o.Dial = net.DialTimeout
	}
	return o
}

// legalRoot refuses what ZooKeeper would, as well as its own tree.
func legalRoot(path string) bool {
	parts := strings.Split(path, "/")
	if len(parts) < 2 || parts[0] != "" || parts[1] == "zookeeper" {
		return false
	}
	for _, part := range parts[1:] {
		if part == "" || part == "." || part == ".." || strings.ContainsFunc(part, func(r rune) bool {
			return r < ' ' || r > '~'
		}) {
			return false
		}
	}
	return true
}

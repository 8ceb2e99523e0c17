package zklock

import (
	"errors"
	"io"
	"net"

	"github.com/go-zookeeper/zk"
)

var (
	// ErrTTL means that the Locker's TTL is more than a third of the timeout that
	// the server granted the session, so that somebody else could be granted the
	// key while a lease is still trusted.
	ErrTTL = errors.New("TTL too long for the session timeout")

	// ErrFence means that a fence cannot be made: the number asked for is above
	// what the server has counted to, or its counter does not fit any more.
	ErrFence = errors.New("fence out of range")

	// ErrSequence means that a key's line has used up its sequence numbers. Its
	// node is removed as soon as the line is empty, and counts anew.
	ErrSequence = errors.New("sequence numbers used up")
)

// errVanished means that the owner's node is gone though its session lives:
// somebody else removed it.
var errVanished = errors.New("node removed by somebody else")

// again reports whether the request that failed so may be sent again: whether
// it did anything is unknown, or it did nothing.
func again(err error) bool {
	for _, known := range []error{
		zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved,
		errVanished, io.EOF, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	var network net.Error
	return errors.As(err, &network)
}

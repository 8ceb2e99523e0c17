package zklock

import (
	"fmt"
	"math"
)

// handoffs is how many bits of a fence are left to the Locker, which numbers its
// hand-offs with them.
const handoffs = 16

// fenceOf makes a fence of a zxid, the number that ZooKeeper gives each write.
// Its upper half counts the elections of a leader: 32,767 of them fit.
func fenceOf(zxid int64) (int64, error) {
	if zxid <= 0 || zxid > math.MaxInt64>>handoffs {
		return 0, fmt.Errorf("%w: zxid %#x", ErrFence, zxid)
	}
	return zxid << handoffs, nil
}

package zklock_test

import (
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
)

func TestBackend(t *testing.T) {
	locktest.Run(t, func(t *testing.T) locktest.Harness {
		addr, root := testserver.ZooKeeper(t), newRoot()
		return locktest.Harness{
			Connect: func(t testing.TB) lock.Backend {
				// The suite's longest TTL is some minutes.
				return connect(t, addr, zklock.Options{Root: root, SessionTimeout: 30 * time.Minute})
			},
			// Not Expires: a cut Tap does not cut the session. Not Raises: zxids
			// cannot be set.
			Notifies:        true,
			FirstInFirstOut: true,
			Fences:          true,
			Forget: func(t testing.TB) {
				t.Helper()
				lookAt(t, addr).clear(root)
			},
		}
	})
}

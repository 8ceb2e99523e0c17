// Package memory is what a changed lock.Memory has to fail, beside locksim.
package memory

import (
	"testing"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
)

func TestMemory(t *testing.T) {
	locktest.Run(t, func(*testing.T) locktest.Harness {
		store := lock.NewMemory()
		return locktest.Harness{
			Connect: func(testing.TB) lock.Backend { return store },
			Expires: true, Notifies: true, Fences: true, Raises: true,
		}
	})
}

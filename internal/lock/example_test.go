package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/lock"
)

// row is what a database does: UPDATE stock SET available = available - 1, fence = ?
// WHERE available >= 1 AND fence < ?, and a look at the fence if that changed nothing.
type row struct{ available, fence int64 }

var (
	errSoldOut = errors.New("sold out")
	errStale   = errors.New("the lease is over: try again")
)

func (r *row) sell(fence int64) error {
	switch {
	case r.fence >= fence:
		return errStale
	case r.available < 1:
		return errSoldOut
	}
	r.available, r.fence = r.available-1, fence
	return nil
}

func Example() {
	locker := lock.New(lock.NewMemory(), lock.Options{TTL: 10 * time.Second})
	defer locker.Close()

	mug := &row{available: 1}
	var paused int64 // the fence of a buyer that writes late
	for range 2 {
		err := locker.Do(context.Background(), "sku:mug", func(_ context.Context, lease *lock.Lease) error {
			if paused == 0 {
				paused = lease.Fence()
			}
			return mug.sell(lease.Fence())
		})
		fmt.Println(err)
	}
	fmt.Println(mug.sell(paused))
	// Output:
	// <nil>
	// sold out
	// the lease is over: try again
}

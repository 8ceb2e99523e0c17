package strategy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Shop is what all strategies need.
type Shop struct {
	Store   order.Store
	MaxOpen int // pending orders that a buyer may have; 0 for any number

	CommitTime time.Duration // how much of a lease must be left to start a COMMIT
}

// Key is the lock's key of a SKU.
func Key(sku string) string { return "sku:" + sku }

// acquire takes the locks of the order's SKUs, all or none.
func acquire(ctx context.Context, locker Locker, d *order.Draft) (Leases, error) {
	return locker.AcquireAll(ctx, order.Map(d.SKUs(), Key)...)
}

// read returns the levels of the order's SKUs, and sets the order's prices by them.
func (s Shop) read(ctx context.Context, d *order.Draft) (order.Levels, error) {
	levels, err := s.Store.Levels(ctx, d.Lines...)
	if err != nil {
		return order.Levels{}, err
	}
	return levels, d.Price(levels)
}

// think pauses between reading and writing, as long as the draft says.
func think(ctx context.Context, d *order.Draft) error { return order.Pause(ctx, d.Think) }

// claimTakeInsert claims the order's key, takes its units and inserts the order: all that a transaction writes.
func (s Shop) claimTakeInsert(tx order.Tx, mode stock.TakeMode, d *order.Draft, levels order.Levels, leases Leases) error {
	if err := s.lockBuyerAndClaimKey(tx, d); err != nil {
		return err
	}
	if err := take(tx, mode, d, levels, leases); err != nil {
		return err
	}
	return s.insert(tx, d, levels, leases)
}

// lockBuyerAndClaimKey locks the row of the order's buyer and writes the row of its idempotency key.
func (s Shop) lockBuyerAndClaimKey(tx order.Tx, d *order.Draft) error {
	if s.MaxOpen > 0 { // a limit on units needs no such lock: a transaction that takes units holds the SKU's row
		others, err := tx.LockBuyers(d.Buyer)
		if err != nil {
			return err
		}
		if len(others) > 0 {
			return order.ErrLocked
		}
	}
	taken, err := tx.ClaimKeys(order.UsedKey{Order: d.Order, Fingerprint: d.Fingerprint})
	if len(taken) > 0 {
		err = order.ErrKeyTaken
	}
	return err
}

// take moves the units of the order's lines from available to reserved, unless a price or a limit has changed since the
// levels were read (but for stock.Overwrite). leases may be nil.
func take(tx order.Tx, mode stock.TakeMode, d *order.Draft, levels order.Levels, leases Leases) error {
	for _, line := range d.Sorted() {
		seen := levels.SKUs[line.SKU]
		terms := seen.Terms()
		t := stock.Take{SKU: line.SKU, Units: line.Units, Seen: seen.Level, Terms: &terms}
		if leases != nil {
			t.Fence = leases.Fence(Key(line.SKU))
		}
		if err := tx.Take(mode, t); err != nil {
			return fmt.Errorf("sku %q: %w", line.SKU, err)
		}
	}
	return nil
}

// insert checks the limits of the order's buyer, writes the order with its lines, and appends its movements to the
// ledger. The fences of leases, which may be nil, are recorded in the movements. A free order is sold at once.
func (s Shop) insert(tx order.Tx, d *order.Draft, levels order.Levels, leases Leases) error {
	limits, limited := order.Limits{MaxOpen: s.MaxOpen}, levels.Limited(1, d.Order)
	var err error
	if s.MaxOpen > 0 {
		if limits.Open, err = tx.Open(d.Buyer); err != nil {
			return err
		}
	}
	var others []order.BuyerSKU
	if limits.Bought, others, err = tx.LockBought(slices.Collect(maps.Keys(limited))...); err != nil {
		return err
	}
	if len(others) > 0 {
		return order.ErrLocked
	}
	if err := limits.Over(d.Order, levels); err != nil {
		return err
	}
	if err := tx.AddBought(limited); err != nil {
		return err
	}
	if err := tx.Insert(d.Order); err != nil {
		return err
	}
	fences := map[string]int64{}
	for _, sku := range d.SKUs() {
		if leases != nil {
			fences[sku] = leases.Fence(Key(sku))
		}
	}
	if err := tx.Record(d.Movements(stock.Reserve, fences, d.CreatedAt)...); err != nil {
		return err
	}
	if d.Status != order.Paid {
		return nil
	}
	if _, _, err := tx.RecordPayments(d.OwnPayment()); err != nil {
		return err
	}
	err = tx.Move(d.Movements(stock.Sell, nil, d.CreatedAt)...)
	if errors.Is(err, order.ErrChanged) { // the strategy has not taken the units
		err = order.ErrNotReserved
	}
	return err
}

// InTime is the last check before a COMMIT. It returns order.ErrTooLate if a lease ends before CommitTime has passed.
func (s Shop) InTime(leases Leases) error {
	if leases.Remaining() < s.CommitTime {
		return order.ErrTooLate
	}
	return nil
}

// raisingFence runs sell. After a stale fence it raises the fences of the leases above those of the stock rows, and
// runs sell once more. If the leases are still held by then, the lock's store had lost its memory, and minted a fence
// below those that the database has accepted; if not, the error is lock.ErrLost.
func (s Shop) raisingFence(ctx context.Context, d *order.Draft, leases Leases, sell func() error) error {
	err := sell()
	if !errors.Is(err, order.ErrStaleFence) {
		return err
	}
	levels, err := s.Store.Levels(ctx, d.Lines...)
	if err != nil {
		return err
	}
	for _, sku := range levels.SKUs {
		if leases.Fence(Key(sku.Name)) > sku.Fence {
			continue
		}
		switch err := leases.Raise(ctx, Key(sku.Name), sku.Fence); {
		case errors.Is(err, lock.ErrLost):
			return err
		case err != nil: // nothing was written: repeating the request is safe
			return fmt.Errorf("sku %q: %w: %w", sku.Name, lock.ErrNoAnswer, err)
		}
	}
	return sell()
}

// backOff is a random time, so that buyers whose tries collided do not collide again. It doubles after each try, since
// failed tries delay the others.
func backOff(try int) time.Duration {
	return 1 + rand.N(min(10*time.Millisecond<<min(try, 16), 2*time.Second))
}

// Locker takes locks. LockerOf adapts a *lock.Locker; the wrong locks of the teaching shop implement it as well.
type Locker interface {
	// AcquireAll takes the locks of these keys, all or none, in sorted order.
	AcquireAll(ctx context.Context, keys ...string) (Leases, error)
	// AcquireWith takes the lock of a key, and then those of the others that are free.
	AcquireWith(ctx context.Context, key string, others ...string) (Leases, error)
}

// Leases are held until Release. A lock without fences returns the fence 0, and a lock without a TTL never ends by
// itself.
type Leases interface {
	Context() context.Context                                 // ends when one of the leases does
	Fence(key string) int64                                   // the fencing token of a key's lease, 0 for a key that is not held
	Raise(ctx context.Context, key string, above int64) error // gives the lease of a key a fence that is higher than above
	Remaining() time.Duration                                 // of the lease that ends first
	Release() error                                           // releases all of them; a second call does nothing
}

// LockerOf returns a Locker that takes the leases of a *lock.Locker.
func LockerOf(locker *lock.Locker) Locker { return leased{locker} }

type leased struct{ *lock.Locker }

func (l leased) AcquireAll(ctx context.Context, keys ...string) (Leases, error) {
	all, err := l.Locker.AcquireAll(ctx, keys...)
	return leases{all, keys}, err
}

func (l leased) AcquireWith(ctx context.Context, key string, others ...string) (Leases, error) {
	all, err := l.Locker.AcquireWith(ctx, key, others...)
	return leases{all, []string{key}}, err
}

type leases struct {
	*lock.Leases
	keys []string
}

func (l leases) Raise(ctx context.Context, key string, above int64) error {
	return l.Lease(key).Raise(ctx, above)
}

func (l leases) Remaining() time.Duration {
	return slices.Min(order.Map(l.keys, func(key string) time.Duration { return l.Lease(key).Remaining() }))
}

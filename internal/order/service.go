package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Strategy is a way to sell under concurrency.
type Strategy interface {
	// Sell places the order, or answers a request whose key is on record with the order of that key (Replaying does so
	// for another Strategy), or returns why it does not. With any error but ErrUnknownOutcome it has changed no row.
	Sell(ctx context.Context, d *Draft) error
}

// Config is what a Service needs.
type Config struct {
	Store    Store
	Strategy Strategy // by which it sells
	Ends     Ender    // by which orders end

	Hold      time.Duration // for which an order holds its units unpaid; 0 means DefaultHold
	Extension time.Duration // for which it holds them longer once its hold is extended; 0 means DefaultHold

	// OnLag is called by ExpireDue with the time for which the order that is due longest has been due by this process's
	// clock, 0 if none is. It may be nil.
	OnLag func(time.Duration)
}

// DefaultHold is how long an order holds its units unless Config.Hold says otherwise.
const DefaultHold = 15 * time.Minute

// Service places, finds and ends orders. It may be used by many goroutines at once.
type Service struct {
	Config
	known sync.Map // names of SKUs that exist
}

// New returns a Service.
func New(c Config) *Service {
	c.Hold = cmp.Or(c.Hold, DefaultHold).Truncate(time.Microsecond) // the precision of a store, or a replay would differ
	c.Extension = cmp.Or(c.Extension, DefaultHold).Truncate(time.Microsecond)
	return &Service{Config: c}
}

// Place places an order. Repeating a request with the same key is safe, whatever the first answer was: replayed means
// that the order was placed before. A replay returns the order as it was placed, pending, whatever has become of it;
// Order returns its current status.
//
// Errors: those of this package that Request.Validate and a Strategy return, and the lock's: lock.ErrNotAcquired,
// lock.ErrNoAnswer, lock.ErrLost.
func (s *Service) Place(ctx context.Context, r Request) (placed Order, replayed bool, err error) {
	if err := r.Validate(); err != nil {
		return Order{}, false, err
	}
	lines := r.merged()
	if err := s.lookUp(ctx, lines); err != nil {
		return Order{}, false, err
	}
	d := &Draft{
		Order:       Order{ID: NewID(), Buyer: r.Buyer, Key: r.Key, Status: Pending, Lines: lines},
		Fingerprint: Fingerprint(lines),
		hold:        s.Hold,
	}
	if err := s.Strategy.Sell(ctx, d); err != nil {
		return Order{}, false, err
	}
	return d.Order, d.Replayed, nil
}

// lookUp returns ErrUnknownSKU before the order waits for a lock. A name that was found is known: no SKU is ever deleted.
func (s *Service) lookUp(ctx context.Context, lines []Line) error {
	unknown := slices.DeleteFunc(slices.Clone(lines), func(line Line) bool { _, known := s.known.Load(line.SKU); return known })
	if len(unknown) == 0 {
		return nil
	}
	if _, err := s.Store.Levels(ctx, unknown...); err != nil {
		return err
	}
	for _, line := range unknown {
		s.known.Store(line.SKU, true)
	}
	return nil
}

// Replaying is a Strategy that answers a request whose key is on record with the order of that key, and sells all other
// orders by Next, again after ErrChanged, and for 5 s after ErrBuyerLocked. Next alone would return ErrKeyTaken for a known
// key.
type Replaying struct {
	Store Store
	Next  Strategy
}

// Sell implements Strategy.
func (r Replaying) Sell(ctx context.Context, d *Draft) error {
	if err := r.replay(ctx, d); !errors.Is(err, ErrNotFound) {
		return err
	}
	began := time.Now()
	err := r.Next.Sell(ctx, d)
	for errors.Is(err, ErrChanged) || errors.Is(err, ErrBuyerLocked) && time.Since(began) < 5*time.Second {
		if errors.Is(err, ErrBuyerLocked) {
			_ = Pause(ctx, rand.N(50*time.Millisecond)) // if ctx has ended, Next says so
		}
		err = r.Next.Sell(ctx, d)
	}
	// While this request waited, another with the same key may have taken the last units.
	if errors.Is(err, ErrKeyTaken) || errors.Is(err, ErrSoldOut) {
		if err := r.replay(ctx, d); !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	if errors.Is(err, ErrKeyTaken) {
		return ErrBusy.with("the idempotency key was purged just now")
	}
	return err
}

// replay returns ErrNotFound if the key of the draft is not on record.
func (r Replaying) replay(ctx context.Context, d *Draft) error {
	used, err := usedKey(ctx, r.Store, d.Buyer, d.Key)
	if err != nil {
		return err
	}
	return d.Replay(used)
}

// usedKey returns what the buyer's key was used for, or ErrNotFound.
func usedKey(ctx context.Context, store Store, buyer, key string) (UsedKey, error) {
	keys, err := store.UsedKeys(ctx, BuyerKey{buyer, key})
	used, ok := keys[BuyerKey{buyer, key}]
	if err == nil && !ok {
		err = ErrNotFound
	}
	return used, err
}

// Pause waits for d. If ctx ends first, the error is its cause.
func Pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Order returns the buyer's order with this id. Another buyer's order is ErrNotFound, like one that does not exist.
func (s *Service) Order(ctx context.Context, buyer, id string) (Order, error) {
	found, err := s.order(ctx, id)
	if err == nil && found.Buyer != buyer {
		return Order{}, fmt.Errorf("order %.40q: %w", id, ErrNotFound)
	}
	return found, err
}

// order returns any buyer's order with this id.
func (s *Service) order(ctx context.Context, id string) (Order, error) {
	found, err := s.Store.Orders(ctx, id)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Order{}, fmt.Errorf("order %.40q: %w", id, err)
	}
	return found[0], nil
}

// Orders returns at most limit of the buyer's orders, the latest first: those placed before the one with the id before,
// or from the latest on if that is empty. No order with that id need exist. New orders do not shift the later pages; one
// that was asked for before the first page was read, and placed afterwards, may be on none.
func (s *Service) Orders(ctx context.Context, buyer, before string, limit int) ([]Order, error) {
	return s.Store.OfBuyer(ctx, buyer, before, limit)
}

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
	// Sell places the order. If the key of the request is on record, Sell answers with the order of the key, or returns
	// ErrKeyTaken, which Replaying turns into that answer. After any error but ErrUnknownOutcome, no row has changed.
	Sell(ctx context.Context, d *Draft) error
}

// Config is what a Service needs.
type Config struct {
	Store    Store
	Strategy Strategy // sells
	Ends     Ender    // ends orders

	Hold      time.Duration // time for which an unpaid order holds its units; 0 means DefaultHold
	Extension time.Duration // time by which a hold is extended; 0 means DefaultHold

	// ExpireDue calls OnLag, unless it is nil, with the delay of the oldest due order, by this process's clock; 0 for
	// none.
	OnLag func(time.Duration)
}

// DefaultHold is the default of Config.Hold and Config.Extension.
const DefaultHold = 15 * time.Minute

// Service places, finds and ends orders. It may be used by many goroutines at once.
type Service struct {
	Config
	known sync.Map // names of SKUs that exist
}

// New returns a Service.
func New(c Config) *Service {
	c.Hold = cmp.Or(c.Hold, DefaultHold).Truncate(time.Microsecond) // the precision of a store: a replay must not differ
	c.Extension = cmp.Or(c.Extension, DefaultHold).Truncate(time.Microsecond)
	return &Service{Config: c}
}

// Place places an order. Repeating a request with the same key is safe, whatever the first answer was. replayed means
// that an earlier request placed the order, which is returned as it was placed, even if it has ended since.
//
// Errors: the errors of Request.Validate and of the Strategy, and from the lock lock.ErrNotAcquired, lock.ErrNoAnswer
// and lock.ErrLost.
func (s *Service) Place(ctx context.Context, r Request) (placed Order, replayed bool, err error) {
	if err := r.Validate(); err != nil {
		return Order{}, false, err
	}
	lines := r.merged()
	if err := s.lookUp(ctx, lines); err != nil {
		return Order{}, false, err
	}
	d := &Draft{
		Order:       Order{ID: NewID(), Buyer: r.Buyer, Key: r.Key, Lines: lines},
		Fingerprint: Fingerprint(lines),
		hold:        s.Hold,
	}
	if err := s.Strategy.Sell(ctx, d); err != nil {
		return Order{}, false, err
	}
	return d.Order, d.Replayed, nil
}

// lookUp returns ErrUnknownSKU before the order waits for a lock. It asks once for each name: no SKU is ever deleted.
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

// A request whose row another transaction has locked is repeated for rowTimeout, after pauses of up to rowPause.
const (
	rowTimeout = 5 * time.Second
	rowPause   = 50 * time.Millisecond
)

// Replaying is a Strategy that adds replays to Next. If the key of a request is on record, the answer is the order of
// the key. Otherwise Next sells the order, and again after ErrChanged and, for 5 s, after ErrLocked.
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
	for errors.Is(err, ErrChanged) || errors.Is(err, ErrLocked) && time.Since(began) < rowTimeout {
		if errors.Is(err, ErrLocked) {
			_ = Pause(ctx, rand.N(rowPause)) // if ctx has ended, Next returns its error
		}
		err = r.Next.Sell(ctx, d)
	}
	// While this request waited, another request with the same key may have taken the last units.
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

// usedKey returns the use of the buyer's key, or ErrNotFound.
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

// Order returns the buyer's order with this id. An order of another buyer is ErrNotFound, as is one that does not
// exist.
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

// Orders returns at most limit of the buyer's orders, the latest first. If before is not empty, it returns the orders
// whose ids sort before that id, which need not exist. New orders do not shift the later pages. An order that was
// requested before the first page was read, and placed afterwards, may be on no page.
func (s *Service) Orders(ctx context.Context, buyer, before string, limit int) ([]Order, error) {
	return s.Store.OfBuyer(ctx, buyer, before, limit)
}

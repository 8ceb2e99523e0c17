package order

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/stock"
)

// Locker takes the lease of a key and runs fn while it is held. *lock.Locker is
// one.
type Locker interface {
	Do(ctx context.Context, key string, fn func(ctx context.Context, lease *lock.Lease) error) error
}

// Stock tells what is for sale. SKU returns stock.ErrUnknownSKU for a name that
// it does not know.
type Stock interface {
	SKU(ctx context.Context, name string) (stock.SKU, error)
}

// Store keeps orders.
type Store interface {
	// InTx runs fn in one transaction and commits it if fn returns nil. Errors of
	// fn come back as they are, after a rollback. A deadlock runs fn again, a few
	// times. ErrUnknownOutcome: the answer to COMMIT was lost. ErrBusy: nothing
	// was changed. The COMMIT does not heed the cancellation of ctx.
	InTx(ctx context.Context, fn func(Tx) error) error

	// Placed returns the order that was placed with the buyer's key and the
	// fingerprint of its request, or ErrNotFound.
	Placed(ctx context.Context, buyer, key string) (Order, string, error)

	// Order returns the order with this id, whoever's it is, or ErrNotFound.
	Order(ctx context.Context, id string) (Order, error)
}

// Tx is what a transaction of a Store can do.
type Tx interface {
	// ClaimKey writes the row of the idempotency key. ErrKeyTaken: somebody
	// committed it before. ErrInProgress: somebody holds it, uncommitted, for
	// longer than the database waits.
	ClaimKey(o Order, fingerprint string) error

	// Take moves units from available to reserved. stock.ErrSoldOut,
	// stock.ErrStaleFence or stock.ErrUnknownSKU: nothing was moved.
	Take(way stock.Way, t stock.Take) error

	// Add writes the order with its lines.
	Add(o Order) error

	// Record appends a movement to the ledger.
	Record(m stock.Movement) error
}

// Service takes orders. It may be used by many goroutines at once.
type Service struct {
	store        Store
	stock        Stock
	lockers      map[string]Locker
	commitMargin time.Duration
	think        time.Duration
	now          func() time.Time
}

// Config is what a Service needs.
type Config struct {
	Store   Store
	Stock   Stock
	Lockers map[string]Locker // by the names that Strategy.Lock uses

	// CommitMargin is how much of a lease must be left to start a commit.
	CommitMargin time.Duration

	// Think is the teaching shop's pause between reading the stock and writing
	// it, for requests that name none.
	Think time.Duration
}

// New returns a Service. It fails if a strategy's lock is missing in c.
func New(c Config) (*Service, error) {
	for _, s := range Strategies() {
		if s.Lock != NoLock && c.Lockers[s.Lock] == nil {
			return nil, fmt.Errorf("order: strategy %s needs a locker called %q", s.Name, s.Lock)
		}
	}
	return &Service{
		store:        c.Store,
		stock:        c.Stock,
		lockers:      c.Lockers,
		commitMargin: c.CommitMargin,
		think:        c.Think,
		now:          time.Now,
	}, nil
}

// Order returns the buyer's order with this id. Another buyer's order is
// ErrNotFound, like one that does not exist.
func (s *Service) Order(ctx context.Context, buyer, id string) (Order, error) {
	o, err := s.store.Order(ctx, id)
	if err == nil && o.Buyer != buyer {
		err = ErrNotFound
	}
	if err != nil {
		return Order{}, fmt.Errorf("order %.40q: %w", id, err)
	}
	return o, nil
}

// Place takes an order. It is safe to ask again with the same key, whatever the
// first answer was: replayed tells that the order was placed before.
//
// Errors: ErrInvalid, ErrKeyMissing, ErrKeyInvalid, ErrKeyReused, ErrInProgress,
// ErrUnknownStrategy, stock.ErrUnknownSKU, stock.ErrSoldOut,
// lock.ErrNotAcquired, lock.ErrNoAnswer, lock.ErrLost, ErrTooLate, ErrBusy, ErrUnknownOutcome.
func (s *Service) Place(ctx context.Context, r Request) (placed Order, replayed bool, err error) {
	if err := r.Validate(); err != nil {
		return Order{}, false, err
	}
	how, err := strategy(r.Strategy)
	if err != nil {
		return Order{}, false, err
	}
	if placed, err = s.replay(ctx, r); !errors.Is(err, ErrNotFound) {
		return placed, err == nil, err
	}
	placed, err = s.checkout(ctx, r, how)
	if err == nil {
		return placed, false, nil
	}
	// While this request waited, its twin may have taken the last units.
	if errors.Is(err, ErrKeyTaken) || errors.Is(err, stock.ErrSoldOut) {
		if twin, again := s.replay(ctx, r); !errors.Is(again, ErrNotFound) {
			return twin, again == nil, again
		}
	}
	return Order{}, false, err
}

// replay returns the order that r's key has made already, or ErrNotFound.
func (s *Service) replay(ctx context.Context, r Request) (Order, error) {
	o, fingerprint, err := s.store.Placed(ctx, r.Buyer, r.Key)
	if err != nil {
		return Order{}, fmt.Errorf("idempotency key: %w", err)
	}
	if fingerprint != r.fingerprint() {
		return Order{}, ErrKeyReused
	}
	return o, nil
}

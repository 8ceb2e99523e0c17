package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/stock"
)

// Locker takes leases. *lock.Locker is one.
type Locker interface {
	// Do takes the lease of a key and runs fn while it is held.
	Do(ctx context.Context, key string, fn func(ctx context.Context, lease *lock.Lease) error) error

	// AcquireAll takes the leases of several keys, all or none, in sorted order.
	AcquireAll(ctx context.Context, keys ...string) (*lock.Leases, error)
}

// Stock tells what is for sale.
type Stock interface {
	// SKUs returns the SKUs with these names, in their order, and the time by the
	// database's clock when they were read. stock.ErrUnknownSKU names the first
	// that is not there.
	SKUs(ctx context.Context, names []string) (skus []stock.SKU, now time.Time, err error)
}

// Store keeps orders.
type Store interface {
	// InTx runs fn in one transaction and commits it if fn returns nil. Errors of
	// fn come back as they are, after a rollback. A deadlock runs fn again, a few
	// times. ErrUnknownOutcome: the answer to COMMIT was lost. ErrBusy: nothing
	// was changed. The COMMIT does not heed the cancellation of ctx.
	InTx(ctx context.Context, fn func(Tx) error) error

	// Placed returns the order that the buyer's key is about and the fingerprint of
	// the request that had the key, or ErrNotFound.
	Placed(ctx context.Context, buyer, key string) (Order, string, error)

	// PlacedAll is Placed for several keys at once. A key that is not there is not
	// in the answer.
	PlacedAll(ctx context.Context, keys []BuyerKey) (map[BuyerKey]Claim, error)

	// KeysOf calls found for the keys of the orders with a SKU, at most limit, and
	// for all that Placed would find. There may be some that were purged.
	KeysOf(ctx context.Context, sku string, limit int, found func(BuyerKey)) error

	// Order returns the order with this id, whoever's it is, or ErrNotFound.
	Order(ctx context.Context, id string) (Order, error)

	// OfBuyer returns at most limit of the buyer's orders, the latest first, those
	// before the one with the id before, or from the latest on if that is empty.
	OfBuyer(ctx context.Context, buyer, before string, limit int) ([]Order, error)

	// Due returns at most limit orders that are pending and due by the database's
	// clock, by ExpiresAt and ID, those behind after.
	Due(ctx context.Context, after Order, limit int) ([]Order, error)
}

// BuyerKey is a buyer's idempotency key.
type BuyerKey struct{ Buyer, Key string }

// Claim is an order and the fingerprint of the request that has its key.
type Claim struct {
	Order       Order
	Fingerprint string
}

// OpenOrders tells of a buyer's pending orders.
type OpenOrders struct {
	Count int
	First time.Time // when the first of them expires
}

// BuyerSKU is a buyer and what that buyer bought.
type BuyerSKU struct{ Buyer, SKU string }

// Tx is what a transaction of a Store can do.
type Tx interface {
	// ClaimKeys writes the rows of the idempotency keys with which orders are placed,
	// all or none, and always in the same sequence. ErrKeyTaken: somebody committed
	// one of them before. ErrInProgress: somebody holds one, uncommitted, for longer
	// than the database waits. It is not told which.
	ClaimKeys(claims ...Claim) error

	// ClaimEnd does so for the key with which the buyer of o ends it.
	ClaimEnd(o Order, key, fingerprint string) error

	// Take moves units from available to reserved. stock.ErrSoldOut,
	// stock.ErrStaleFence, stock.ErrChanged or stock.ErrUnknownSKU: nothing was moved.
	Take(way stock.Way, t stock.Take) error

	// LockBuyers makes these buyers' other orders wait, where they call it, until
	// this transaction has ended. Buyers are locked always in the same sequence.
	LockBuyers(buyers ...string) error

	// Open tells which of the buyers have pending orders, also those that this
	// transaction has added. It is exact behind LockBuyers.
	Open(buyers ...string) (map[string]OpenOrders, error)

	// Bought tells how many units of these SKUs are in orders of these buyers that
	// are pending or paid, also those that this transaction has added. It is exact
	// behind the Take of those SKUs.
	Bought(buyers, skus []string) (map[BuyerSKU]int64, error)

	// Add writes the orders with their lines; without any, it does nothing.
	Add(orders ...Order) error

	// Move ends a pending order: as Expired if it is due by the database's clock,
	// as anything else if it is not. It returns the order's state, also where that
	// let nothing be moved.
	Move(id string, to Status) (now Status, moved bool, err error)

	// Settle moves units out of reserved: stock.Sell or stock.Release.
	// stock.ErrNotReserved: nothing was moved.
	Settle(kind stock.Kind, sku string, units int64) error

	// Record appends movements to the ledger.
	Record(movements ...stock.Movement) error
}

// Service takes orders. It may be used by many goroutines at once.
type Service struct {
	strategies   []Strategy
	store        Store
	stock        Stock
	lockers      map[string]Locker
	plain        map[string]PlainLocker
	missing      map[string]string
	commitMargin time.Duration
	thinkTime    time.Duration
	hold         time.Duration
	maxOpen      int
	now          func() time.Time
	lanes        *lanes
	onBatch      func(orders int)
	onPanic      func(err error)
	recent       *recent
	headStarts   chan struct{} // holds something for each that there is
	soldOut      *soldOut
	announce     func(skus ...string)
	onRefused    func()
	sweptUntil   atomic.Pointer[Order] // where the last sweep gave up; nil: it did not
}

// Config is what a Service needs.
type Config struct {
	Store   Store
	Stock   Stock
	Lockers map[string]Locker // by the names that Strategy.Lock uses

	// PlainLockers are further locks by these names, of strategies that are wrong
	// on purpose.
	PlainLockers map[string]PlainLocker

	// Missing tells, by their names, which strategies this shop cannot offer, and
	// why. Their locks are not needed.
	Missing map[string]string

	// CommitMargin is how much of a lease must be left to start a commit.
	CommitMargin time.Duration

	// Think is the teaching shop's pause between reading the stock and writing
	// it, for requests that name none.
	Think time.Duration

	// Hold is how long an order holds its units unpaid; 0 means DefaultHold.
	Hold time.Duration

	// MaxOpen is how many orders of a buyer may be pending; 0 for any number. It is
	// to be the same in all instances.
	MaxOpen int

	// MaxLane is how many buyers of one SKU may wait in this instance for a strategy
	// with lanes; 0 means DefaultMaxLane.
	MaxLane int

	// HeadStarts is how many lanes at a time may begin the transaction of their next
	// batch while they wait for its lease, for a second at most. Each keeps a connection
	// of the Store. It is 0 for a Store that lets one transaction write at a time.
	HeadStarts int

	// OnBatch is told how many orders a lane has placed in one transaction; nil for
	// nobody. It is called by many goroutines at once, with a lease held.
	OnBatch func(orders int)

	// OnPanic is told, with the stack, of a panic while a lane was served; nil for
	// nobody. Buyers without an answer get an error that no sentinel matches.
	OnPanic func(err error)

	// SoldOutFor is how long it is remembered that a SKU had nothing left, for
	// strategies that do so, while Hears; 0 for not at all.
	SoldOutFor time.Duration

	// Announce tells other instances' Heard that units of these SKUs came back; nil:
	// nobody is told. It must not block.
	Announce func(skus ...string)

	// OnRefused is told of each order that is refused by what is remembered; nil for
	// nobody. It is called by many goroutines at once.
	OnRefused func()
}

// DefaultMaxLane is as many as lock.Options.MaxQueue lets wait for a lease.
const DefaultMaxLane = 10_000

// DefaultHold is how long an order holds its units, where nobody says otherwise.
const DefaultHold = 15 * time.Minute

// New returns a Service. It fails if the lock of a strategy is missing in c, and
// c does not say that the strategy is.
func New(c Config) (*Service, error) {
	table := Strategies()
	for _, s := range table {
		if c.Missing[s.Name] == "" && s.Lock != NoLock && c.Lockers[s.Lock] == nil && c.PlainLockers[s.Lock] == nil {
			return nil, fmt.Errorf("order: strategy %s needs a locker called %q", s.Name, s.Lock)
		}
	}
	return &Service{
		strategies:   table,
		store:        c.Store,
		stock:        c.Stock,
		lockers:      c.Lockers,
		plain:        c.PlainLockers,
		missing:      c.Missing,
		commitMargin: c.CommitMargin,
		thinkTime:    c.Think,
		hold:         cmp.Or(c.Hold, DefaultHold).Truncate(time.Microsecond), // what a store keeps, or a replay would differ
		maxOpen:      c.MaxOpen,
		now:          time.Now,
		lanes:        newLanes(cmp.Or(c.MaxLane, DefaultMaxLane)),
		onBatch:      c.OnBatch,
		onPanic:      c.OnPanic,
		recent:       newRecent(time.Now),
		headStarts:   make(chan struct{}, max(0, c.HeadStarts)),
		soldOut:      newSoldOut(c.SoldOutFor, time.Now),
		announce:     c.Announce,
		onRefused:    c.OnRefused,
	}, nil
}

// Close turns away who stands in a lane, waits for the orders that are being
// placed there, and lets no more in (lock.ErrClosed). It is called before the
// Lockers are closed. Calling it again is safe.
func (s *Service) Close() { s.lanes.close() }

// Queued returns how many buyers stand in the lanes of this instance.
func (s *Service) Queued() int { return s.lanes.queued() }

// Missing returns why this shop cannot sell by the strategy of this name; empty
// if it can.
func (s *Service) Missing(strategy string) string { return s.missing[strategy] }

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

// Orders returns at most limit of the buyer's orders, the latest first, those
// before the one with the id before, or from the latest on if that is empty. It
// need not be the id of an order. What is placed meanwhile moves no page.
//
// Errors: ErrBuyer, ErrBusy.
func (s *Service) Orders(ctx context.Context, buyer, before string, limit int) ([]Order, error) {
	if err := CheckBuyer(buyer); err != nil {
		return nil, err
	}
	return s.store.OfBuyer(ctx, buyer, before, limit)
}

// Place takes an order. It is safe to ask again with the same key, whatever the
// first answer was: replayed tells that the order was placed before. A replay
// returns it as it was placed, pending, whatever has become of it; Order tells.
//
// A ctx that ends while the buyer stands in a lane is a lock.ErrNotAcquired; once
// the lane's leader has begun to serve the buyer, it is not heeded.
//
// Errors: ErrInvalid, ErrBuyer, ErrKeyMissing, ErrKeyInvalid, ErrKeyReused, ErrInProgress,
// ErrUnknownStrategy, ErrMissingStrategy, stock.ErrUnknownSKU, stock.ErrSoldOut, ErrTooManyOpen,
// ErrPurchaseLimit, stock.ErrStaleFence, stock.ErrBusy, lock.ErrNotAcquired,
// lock.ErrNoAnswer, lock.ErrLost, ErrTooLate, ErrBusy, ErrUnknownOutcome.
func (s *Service) Place(ctx context.Context, r Request) (placed Order, replayed bool, err error) {
	if err := r.Validate(); err != nil {
		return Order{}, false, err
	}
	how, err := find(s.strategies, r.Strategy)
	if err != nil {
		return Order{}, false, err
	}
	if why := s.Missing(how.Name); why != "" {
		return Order{}, false, fmt.Errorf("%w: %s: %s", ErrMissingStrategy, how.Name, why)
	}
	r = r.merged()
	if how.Remembers {
		if err := s.knownSoldOut(r); err != nil {
			return Order{}, false, err
		}
	}
	if how.Lane && len(r.Lines) == 1 && stock.ValidName(r.Lines[0].SKU) {
		return s.placeInLane(ctx, r, how)
	}
	return s.placeAlone(ctx, r, how)
}

// placeAlone takes an order in a transaction of its own.
func (s *Service) placeAlone(ctx context.Context, r Request, how Strategy) (placed Order, replayed bool, err error) {
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
	if errors.Is(err, ErrKeyTaken) {
		err = errKeyGone()
	}
	return Order{}, false, err
}

// replay returns the order that r's key has made already, or ErrNotFound.
func (s *Service) replay(ctx context.Context, r Request) (Order, error) {
	return s.answered(ctx, r.Buyer, r.Key, r.fingerprint(), Pending)
}

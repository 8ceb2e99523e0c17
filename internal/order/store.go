package order

import (
	"context"
	"time"

	"example.com/shop/internal/stock"
)

// Store keeps orders and stock. *store.Store is one. Reads of a database that does not answer are ErrBusy.
//
// What a Store says is missing is missing: units for a line, a SKU, an order, and whatever the error says that ends a
// transaction. If the answer may be that of a server that was replaced and has not noticed, it is ErrBusy instead.
type Store interface {
	// Levels returns the SKUs of these lines. ErrUnknownSKU names the first that does not exist.
	Levels(ctx context.Context, lines ...Line) (Levels, error)

	// InTx runs fn in one transaction and commits it if fn returns nil. Errors come back as they are, after a rollback.
	// A deadlock runs fn again, a few times. On MySQL the COMMIT does not heed the cancellation of ctx; on SQLite, one that
	// is cancelled is rolled back. ErrBusy: nothing was changed. fn returns ErrNothing if it has nothing to commit.
	//
	// If the answer to the COMMIT is lost, InTx finds out on another connection whether it was done: it writes the
	// idempotency key of an order that the transaction has placed, which waits for that transaction. If it was done, that
	// is no error; if not, fn runs again. If the question also fails, or no order was placed, the error is ErrUnknownOutcome.
	InTx(ctx context.Context, fn func(Tx) error) error

	// UsedKeys returns the keys that are on record.
	UsedKeys(ctx context.Context, keys ...BuyerKey) (map[BuyerKey]UsedKey, error)

	// Orders returns the orders with these ids, of any buyer: those that exist, in no particular order.
	Orders(ctx context.Context, ids ...string) ([]Order, error)

	// OfBuyer returns at most limit of the buyer's orders, the latest first: those placed before the one with the id
	// before, or from the latest on if that is empty.
	OfBuyer(ctx context.Context, buyer, before string, limit int) ([]Order, error)

	// Due returns at most limit orders that are pending and due by the database's clock, sorted by ExpiresAt and ID:
	// those that come behind the order after.
	Due(ctx context.Context, after Order, limit int) ([]Order, error)
}

// Tx is one attempt of a transaction. A call that fails may leave it open, so that its caller has to return the error:
// InTx rolls back.
type Tx interface {
	// ClaimKeys writes the rows of idempotency keys, each for the ID of an order, in the sequence of their primary key. It
	// returns the keys that are on record already. ErrInProgress: another transaction holds a key for longer than the
	// database waits.
	ClaimKeys(keys ...UsedKey) (taken map[BuyerKey]UsedKey, err error)

	// FreeKeys deletes rows that this transaction has written.
	FreeKeys(keys ...BuyerKey) error

	// LockBuyers locks the rows of these buyers until this transaction has ended. It does not wait for those that other
	// transactions have locked, and returns them: other buyers may wait for this transaction.
	LockBuyers(buyers ...string) (others []string, err error)

	// Levels is that of Store, as this transaction sees it: by its level of isolation.
	Levels(skus []string) (Levels, error)

	// LockLevels is Levels, and keeps the rows locked until this transaction ends.
	LockLevels(skus []string) (Levels, error)

	// TryLevels is LockLevels, except that after this time, or three times as long if all are locked, it leaves out the SKUs
	// whose rows another transaction has locked.
	TryLevels(skus []string, within time.Duration) (Levels, error)

	// Take moves units from available to reserved. ErrSoldOut, ErrStaleFence, ErrChanged or ErrUnknownSKU: nothing was
	// moved.
	Take(mode stock.TakeMode, t stock.Take) error

	// Open counts the pending orders of these buyers. The count is exact after LockBuyers.
	Open(buyers ...string) (map[string]OpenOrders, error)

	// Bought returns the units of SKUs with a limit in pending and paid orders of buyers. The rows of the SKUs are locked.
	Bought(of ...BuyerSKU) (map[BuyerSKU]int64, error)

	// AddBought adds to what Bought returns: the units of orders that are placed, or, below 0, of orders that are cancelled
	// or have expired. The rows of the SKUs are locked.
	AddBought(units map[BuyerSKU]int64) error

	// Insert writes the orders with their lines.
	Insert(orders ...Order) error

	// Delete deletes orders that this transaction has inserted.
	Delete(ids ...string) error

	// Move changes the levels of SKUs by one statement, all or none, and records the movements. Those of a SKU write their
	// highest fence, except if that is 0. ErrChanged: nothing was moved, since units were missing, or a row had a fence as
	// high.
	Move(movements ...stock.Movement) error

	// Record appends movements to the ledger.
	Record(movements ...stock.Movement) error

	// LockOrders locks the rows of these orders until this transaction has ended, and returns those that exist, by their
	// ids. It does not wait for rows that other transactions have locked.
	LockOrders(ids ...string) (map[string]Found, error)

	// Extend writes the ExpiresAt and FirstExpiry of an order that is locked and pending.
	Extend(o Order) error

	// RecordPayments records payments. It leaves those already on record as they are, and returns them by id.
	RecordPayments(payments ...Payment) (known map[string]Payment, err error)

	// EndAll ends orders that are locked and pending: those with the ids of a status end so.
	EndAll(ids map[Status][]string) error
}

// BuyerKey is a buyer's idempotency key.
type BuyerKey struct{ Buyer, Key string }

// UsedKey is what an idempotency key was used for: an order, and the fingerprint of the request that places or ends it.
type UsedKey struct {
	Order       Order
	Fingerprint string
}

// Found is an order that LockOrders has found.
type Found struct {
	Order
	Due    bool // by the database's clock
	Locked bool // by this transaction, and not by another one
}

// OpenOrders are a buyer's pending orders.
type OpenOrders struct {
	Count int
	First time.Time // when the first of them expires
}

// BuyerSKU is a buyer and what that buyer bought.
type BuyerSKU struct{ Buyer, SKU string }

package order

import (
	"context"
	"time"

	"example.com/shop/internal/stock"
)

// Store keeps orders and stock. *store.Store implements it. If the database does not answer, a read returns ErrBusy.
//
// If a Store answers that units, a SKU or an order are missing, they are missing. If the answer may come from a server
// that was replaced and has not noticed, the Store returns ErrBusy, also as the error that ends a transaction.
type Store interface {
	// Levels returns the SKUs of these lines. ErrUnknownSKU names the first SKU that does not exist.
	Levels(ctx context.Context, lines ...Line) (Levels, error)

	// InTx runs fn in one transaction, and commits if fn returns nil. If fn fails, InTx rolls back and returns fn's error.
	// After a deadlock, InTx runs fn again, a few times; if the server has ended the connection, once. On MySQL, the
	// COMMIT ignores the cancellation of ctx; on SQLite, a cancelled COMMIT is rolled back. ErrBusy: nothing was changed;
	// ErrLocked: a statement waited too long for a lock. fn returns ErrNothing if it has nothing to commit.
	//
	// If the answer to the COMMIT is lost, InTx finds out on another connection whether the COMMIT was done: it writes the
	// idempotency key of an order that the transaction has placed, which waits for that transaction. Then InTx returns
	// nil, or runs fn again. If InTx cannot find out, or no order was placed, it returns ErrUnknownOutcome.
	InTx(ctx context.Context, fn func(Tx) error) error

	// UsedKeys returns the keys that are on record.
	UsedKeys(ctx context.Context, keys ...BuyerKey) (map[BuyerKey]UsedKey, error)

	// Orders returns the existing orders with these ids, of any buyer, in no particular order.
	Orders(ctx context.Context, ids ...string) ([]Order, error)

	// OfBuyer returns at most limit of the buyer's orders, the latest first. If before is not empty, it returns the orders
	// whose ids sort before that id.
	OfBuyer(ctx context.Context, buyer, before string, limit int) ([]Order, error)

	// Due returns at most limit orders that are pending and due by the database's clock, sorted by ExpiresAt and ID. It
	// returns only orders that follow the order after.
	Due(ctx context.Context, after Order, limit int) ([]Order, error)
}

// Tx is one attempt of a transaction. A failed call may leave it open: the caller must return the error, to roll back.
type Tx interface {
	// ClaimKeys writes the rows of idempotency keys, each for the ID of an order, in the order of their primary keys. It
	// returns the keys that are already on record.
	ClaimKeys(keys ...UsedKey) (taken map[BuyerKey]UsedKey, err error)

	// FreeKeys deletes the rows of keys that this transaction has claimed.
	FreeKeys(keys ...BuyerKey) error

	// LockBuyers locks the rows of these buyers until this transaction has ended. It returns the buyers whose rows other
	// transactions have locked, and does not wait for them, because other buyers may wait for this transaction.
	LockBuyers(buyers ...string) (others []string, err error)

	// Levels is like Levels of Store, but reads in this transaction, at its level of isolation.
	Levels(skus []string) (Levels, error)

	// LockLevels is like Levels, and keeps the rows locked until this transaction ends.
	LockLevels(skus []string) (Levels, error)

	// TryLevels is like LockLevels, but waits only for the time within, or three times as long if all rows are locked.
	// Then it leaves out the SKUs whose rows another transaction has locked.
	TryLevels(skus []string, within time.Duration) (Levels, error)

	// Take moves units from available to reserved. ErrSoldOut, ErrStaleFence, ErrChanged, ErrUnknownSKU: nothing was
	// moved.
	Take(mode stock.TakeMode, t stock.Take) error

	// Open counts the pending orders of these buyers. The count is exact after LockBuyers.
	Open(buyers ...string) (map[string]OpenOrders, error)

	// LockBought returns the units of limited SKUs in buyers' pending and paid orders, and locks these numbers until this
	// transaction has ended. The caller has locked the SKUs' rows. LockBought does not wait for counts that other
	// transactions have locked. It returns their buyers and SKUs as others.
	LockBought(of ...BuyerSKU) (bought map[BuyerSKU]int64, others []BuyerSKU, err error)

	// AddBought adds to the numbers that LockBought returns: units of placed orders or, negative, of orders that are
	// cancelled or have expired.
	AddBought(units map[BuyerSKU]int64) error

	// Insert writes the orders with their lines.
	Insert(orders ...Order) error

	// Delete deletes orders that this transaction has inserted.
	Delete(ids ...string) error

	// Move changes the levels of SKUs by one statement, all or none, and records the movements. It writes the highest
	// fence of a SKU's movements to the row, unless that fence is 0. ErrChanged: nothing was moved, because units were
	// missing or the fence of a row was not lower.
	Move(movements ...stock.Movement) error

	// Record appends movements to the ledger.
	Record(movements ...stock.Movement) error

	// LockOrders locks the rows of these orders until this transaction has ended, and returns the existing orders by id.
	// It does not wait for rows that other transactions have locked.
	LockOrders(ids ...string) (map[string]Found, error)

	// Extend writes the ExpiresAt and FirstExpiry of an order that is locked and pending.
	Extend(o Order) error

	// RecordPayments records the new payments. It does not wait for payments on record that other transactions have
	// locked, and returns their ids as others. It returns, by id, the other payments that are already on record,
	// unchanged. If so far only the refund of a payment is on record, RecordPayments adds the order and the amount to this
	// record.
	RecordPayments(payments ...Payment) (known map[string]Payment, others []string, err error)

	// ForgetPayments deletes payments that this transaction has recorded.
	ForgetPayments(ids ...string) error

	// EndAll ends orders that are locked and pending: the orders with the ids of a status get this status.
	EndAll(ids map[Status][]string) error
}

// BuyerKey is a buyer's idempotency key.
type BuyerKey struct{ Buyer, Key string }

// UsedKey is the use of an idempotency key: an order, and the fingerprint of the request that places or ends the order.
type UsedKey struct {
	Order       Order
	Fingerprint string
}

// Found is an order that LockOrders has found.
type Found struct {
	Order
	Due    bool // by the database's clock
	Locked bool // by this transaction, not by another
}

// OpenOrders are a buyer's pending orders.
type OpenOrders struct {
	Count int
	First time.Time // when the first order expires
}

// BuyerSKU is a buyer and a SKU that the buyer has bought.
type BuyerSKU struct{ Buyer, SKU string }

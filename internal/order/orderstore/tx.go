package orderstore

import (
	"errors"
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/stockstore"
	"example.com/shop/internal/store"
)

// tx is one attempt of a transaction.
type tx struct {
	db     *gorm.DB
	failed error // the first statement that failed; nothing is done after it
}

var _ order.Tx = (*tx)(nil)

// ClaimEnd writes the row of a key with which the order's buyer ends it.
func (t *tx) ClaimEnd(o order.Order, key, fingerprint string) error {
	insert := "INSERT INTO idempotency_keys (buyer, idempotency_key, fingerprint, order_id, created_at) VALUES (?, ?, ?, ?, " + store.Clock(t.db) + ")"
	return t.claim(func() *gorm.DB { return t.db.Exec(insert, o.Buyer, key, fingerprint, o.ID) })
}

// claim tells what became of the row of a key.
func (t *tx) claim(insert func() *gorm.DB) error {
	return t.do(func() error {
		err := insert().Error
		switch store.Classify(err) {
		case store.None:
			return nil
		case store.Duplicate:
			return order.ErrKeyTaken
		case store.LockWait:
			// The cause is not wrapped: this wait is the buyer's answer, and must not
			// be taken for a busy database.
			return order.ErrInProgress
		default:
			return fmt.Errorf("claim key: %w", err)
		}
	})
}

// Take moves units from available to reserved.
func (t *tx) Take(way stock.Way, wish stock.Take) error {
	return t.do(func() error { return stockstore.Take(t.db, way, wish) })
}

// Settle moves units out of reserved.
func (t *tx) Settle(kind stock.Kind, sku string, units int64) error {
	return t.do(func() error { return stockstore.Settle(t.db, kind, sku, units) })
}

// Record appends movements to the ledger.
func (t *tx) Record(movements ...stock.Movement) error {
	return t.do(func() error { return stockstore.Record(t.db, movements...) })
}

// do runs a step unless one failed before, and remembers a failure.
func (t *tx) do(step func() error) error {
	if t.failed != nil {
		return t.failed
	}
	err := step()
	if err != nil && !refusal(err) {
		t.failed = err
	}
	return err
}

// refusal reports whether err is an answer rather than a failure: the statement
// worked and found a reason to change nothing.
func refusal(err error) bool {
	for _, answer := range []error{
		order.ErrKeyTaken, order.ErrNotFound, stock.ErrNotReserved, stock.ErrSoldOut, stock.ErrStaleFence, stock.ErrChanged, stock.ErrUnknownSKU, stock.ErrInvalid,
	} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return false
}

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

// ClaimKey writes the row of the idempotency key. A twin that is still running
// holds that row: the statement waits for it. Then the key is either taken, or
// free again because the twin rolled back.
func (t *tx) ClaimKey(o order.Order, fingerprint string) error {
	return t.do(func() error {
		row := keyRow{
			Buyer:          o.Buyer,
			IdempotencyKey: o.Key,
			Fingerprint:    fingerprint,
			OrderID:        o.ID,
			CreatedAt:      store.Time{Time: o.CreatedAt},
		}
		err := t.db.Create(&row).Error
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

// Add writes the order with its lines.
func (t *tx) Add(o order.Order) error {
	return t.do(func() error {
		row, lines := rowOfOrder(o), rowsOfLines(o)
		if err := t.db.Create(&row).Error; err != nil {
			return fmt.Errorf("add order %s: %w", o.ID, err)
		}
		if len(lines) == 0 {
			return nil
		}
		if err := t.db.Create(&lines).Error; err != nil {
			return fmt.Errorf("add lines of order %s: %w", o.ID, err)
		}
		return nil
	})
}

// Record appends a movement to the ledger.
func (t *tx) Record(m stock.Movement) error {
	return t.do(func() error { return stockstore.Record(t.db, m) })
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
		order.ErrKeyTaken, stock.ErrSoldOut, stock.ErrStaleFence, stock.ErrUnknownSKU, stock.ErrInvalid,
	} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return false
}

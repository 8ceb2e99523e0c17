package orderstore

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store"
)

// Store keeps orders. It may be used by many goroutines at once.
type Store struct {
	db *gorm.DB
}

var _ order.Store = (*Store)(nil)

// New returns a Store on a migrated database.
func New(db *gorm.DB) *Store { return &Store{db: db} }

// InTx runs fn in one transaction, as order.Store and store.InTx say.
func (s *Store) InTx(ctx context.Context, fn func(order.Tx) error) error {
	err := store.InTx(ctx, s.db, func(db *gorm.DB) error {
		t := &tx{db: db}
		if err := fn(t); err != nil {
			return err
		}
		return t.failed
	})
	switch {
	case errors.Is(err, store.ErrOutcomeUnknown):
		return fmt.Errorf("%w: %w", order.ErrUnknownOutcome, err)
	case errors.Is(err, store.ErrBusy):
		return fmt.Errorf("%w: %w", order.ErrBusy, err)
	}
	return err
}

// Placed returns the order that was placed with the buyer's key and the
// fingerprint of its request, or order.ErrNotFound.
func (s *Store) Placed(ctx context.Context, buyer, key string) (order.Order, string, error) {
	var row struct {
		Order       orderRow `gorm:"embedded"`
		Fingerprint string
	}
	err := s.db.WithContext(ctx).Table("idempotency_keys AS k").
		Select("k.fingerprint, o.*").
		Joins("JOIN orders AS o ON o.id = k.order_id").
		Where("k.buyer = ? AND k.idempotency_key = ?", buyer, key).
		Take(&row).Error
	if err != nil {
		return order.Order{}, "", readError(err, "order of a key")
	}
	o, err := s.withLines(ctx, row.Order)
	return o, row.Fingerprint, err
}

// Order returns the order with this id, whoever's it is, or order.ErrNotFound.
func (s *Store) Order(ctx context.Context, id string) (order.Order, error) {
	var row orderRow
	if err := s.db.WithContext(ctx).Where("id = ?", id).Take(&row).Error; err != nil {
		return order.Order{}, readError(err, "order")
	}
	return s.withLines(ctx, row)
}

func (s *Store) withLines(ctx context.Context, row orderRow) (order.Order, error) {
	var lines []lineRow
	err := s.db.WithContext(ctx).Where("order_id = ?", row.ID).Order("line_no").Find(&lines).Error
	if err != nil {
		return order.Order{}, readError(err, "lines of order "+row.ID)
	}
	return row.order(lines), nil
}

// readError tells a row that is not there from a database that is not there,
// which is order.ErrBusy.
func readError(err error, what string) error {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return order.ErrNotFound
	}
	if store.Unavailable(err) {
		return fmt.Errorf("%w: read %s: %w", order.ErrBusy, what, err)
	}
	return fmt.Errorf("read %s: %w", what, err)
}

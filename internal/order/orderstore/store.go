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

// Placed returns the order that the buyer's key is about and the fingerprint of
// the request that had the key, or order.ErrNotFound.
func (s *Store) Placed(ctx context.Context, buyer, key string) (order.Order, string, error) {
	wanted := order.BuyerKey{Buyer: buyer, Key: key}
	found, err := s.PlacedAll(ctx, []order.BuyerKey{wanted})
	if err != nil {
		return order.Order{}, "", err
	}
	claim, ok := found[wanted]
	if !ok {
		return order.Order{}, "", order.ErrNotFound
	}
	return claim.Order, claim.Fingerprint, nil
}

// Order returns the order with this id, whoever's it is, or order.ErrNotFound.
func (s *Store) Order(ctx context.Context, id string) (order.Order, error) {
	var row orderRow
	if err := s.db.WithContext(ctx).Where("id = ?", id).Take(&row).Error; err != nil {
		return order.Order{}, readError(err, "order")
	}
	return s.withItsLines(ctx, row)
}

// OfBuyer returns at most limit of the buyer's orders, the latest first, those
// before the one with the id before, or from the latest on if that is empty.
func (s *Store) OfBuyer(ctx context.Context, buyer, before string, limit int) ([]order.Order, error) {
	query := s.db.WithContext(ctx).Where("buyer = ?", buyer)
	if before != "" {
		query = query.Where("id < ?", before)
	}
	var rows []orderRow
	if err := query.Order("id DESC").Limit(limit).Find(&rows).Error; err != nil {
		return nil, readError(err, "orders of a buyer")
	}
	return s.withLines(ctx, rows)
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

package orderstore

import (
	"context"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store"
)

// Due returns at most limit orders that are pending and due by the database's
// clock, by ExpiresAt and ID, those behind after.
func (s *Store) Due(ctx context.Context, after order.Order, limit int) ([]order.Order, error) {
	var rows []orderRow
	behind := store.Time{Time: after.ExpiresAt}
	db := s.db.WithContext(ctx)
	err := db.Where("status = ? AND expires_at <= "+store.Clock(db), order.Pending).
		Where("(expires_at > ? OR expires_at = ? AND id > ?)", behind, behind, after.ID).
		Order("expires_at, id").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, readError(err, "orders that are due")
	}
	return s.withLines(ctx, rows)
}

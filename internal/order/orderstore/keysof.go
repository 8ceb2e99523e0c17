package orderstore

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store"
)

// clocksApart is more than the clocks of instances, by which orders get their ids,
// and of the database, by which keys age, may differ.
const clocksApart = 24 * time.Hour

// KeysOf calls found for the keys of the orders with a SKU, at most limit, and for
// all that Placed would find, except keys past their time that a purge has yet to
// reach. There may be some that were purged. Their ids sort by
// time, so that the index leaves out the SKU's earlier history.
func (s *Store) KeysOf(ctx context.Context, sku string, limit int, found func(order.BuyerKey)) error {
	db := s.db.WithContext(ctx)
	var purged struct{ PurgedUntil store.Time }
	if err := db.Table("idempotency_purge").Select("purged_until").Take(&purged).Error; err != nil {
		return readError(err, "age of the oldest key")
	}
	rows, err := db.Table("order_lines AS l").Select("o.buyer, o.idempotency_key").
		Joins("JOIN orders AS o ON o.id = l.order_id").
		Where("l.sku = ? AND l.order_id >= ?", sku, firstID(purged.PurgedUntil.Add(-clocksApart))).
		Limit(limit).Rows()
	if err != nil {
		return readError(err, "keys of a sku")
	}
	defer rows.Close()
	for rows.Next() {
		var key order.BuyerKey
		if err := rows.Scan(&key.Buyer, &key.Key); err != nil {
			return readError(err, "keys of a sku")
		}
		found(key)
	}
	if err := rows.Err(); err != nil {
		return readError(err, "keys of a sku")
	}
	return nil
}

// firstID sorts before all UUIDv7 of that time: they begin with its milliseconds.
func firstID(at time.Time) string {
	ms := max(0, at.UnixMilli())
	return fmt.Sprintf("%08x-%04x", ms>>16, ms&0xffff)
}

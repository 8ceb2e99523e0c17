package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/shop/internal/order"
)

func (t *tx) ClaimKeys(claims ...order.UsedKey) (map[order.BuyerKey]order.UsedKey, error) {
	keyOf := func(c order.UsedKey) order.BuyerKey { return order.BuyerKey{Buyer: c.Order.Buyer, Key: c.Order.Key} }
	sorted := slices.SortedFunc(slices.Values(claims), func(a, b order.UsedKey) int { return byPrimaryKey(keyOf(a), keyOf(b)) })
	read := func(keys []order.BuyerKey) (map[order.BuyerKey]order.UsedKey, error) { return usedKeys(t.db, keys) }
	taken, err := insertNew(sorted, keyOf, t.insertKeys, read)
	return taken, failed(err, "claim keys")
}

// insertNew inserts the new rows by one statement, and returns the rows that were already on record. If another
// transaction with the same key still runs, the statement waits until that transaction has committed or rolled back.
//
// Most rows are new. insertNew reads the rows on record only if the database refuses one. It then tries again:
// meanwhile, another transaction may commit a further row, or a purge may delete one.
func insertNew[K comparable, R any](
	rows []R, keyOf func(R) K, insert func([]R) error, read func([]K) (map[K]R, error),
) (map[K]R, error) {
	recorded := map[K]R{}
	for range 5 {
		if len(rows) == 0 {
			return recorded, nil
		}
		if err := insert(rows); classify(err) != duplicate {
			return recorded, err
		}
		found, err := read(order.Map(rows, keyOf))
		if err != nil {
			return nil, err
		}
		maps.Copy(recorded, found)
		rows = slices.DeleteFunc(rows, func(row R) bool { _, known := found[keyOf(row)]; return known })
	}
	return nil, order.ErrBusy // other transactions insert row after row
}

func byPrimaryKey(a, b order.BuyerKey) int {
	return cmp.Or(cmp.Compare(a.Buyer, b.Buyer), cmp.Compare(a.Key, b.Key))
}

// FreeKeys implements order.Tx. It deletes each row by its primary key, as purge does.
func (t *tx) FreeKeys(keys ...order.BuyerKey) error {
	for _, k := range keys {
		err := t.db.Exec("DELETE FROM idempotency_keys WHERE buyer = ? AND idempotency_key = ?", k.Buyer, k.Key).Error
		if err != nil {
			return failed(err, "free key")
		}
	}
	return nil
}

func (t *tx) insertKeys(claims []order.UsedKey) error {
	rows := values(claims, func(c order.UsedKey) []any {
		return []any{c.Order.Buyer, c.Order.Key, c.Fingerprint, c.Order.ID, gorm.Expr(t.store.clock)}
	})
	return t.db.Exec("INSERT INTO `idempotency_keys` (buyer, idempotency_key, fingerprint, order_id, created_at) VALUES ?", rows).Error
}

// values writes a row in parentheses, for VALUES, for each element of a list.
func values[E any](list []E, row func(E) []any) clause.Expr {
	return clause.Expr{SQL: "?", Vars: []any{order.Map(list, row)}, WithoutParentheses: true}
}

// UsedKeys implements order.Store.
func (s *Store) UsedKeys(ctx context.Context, keys ...order.BuyerKey) (map[order.BuyerKey]order.UsedKey, error) {
	found, err := usedKeys(s.db.WithContext(ctx), keys)
	return found, explain(ctx, "read idempotency keys", err)
}

func usedKeys(db *gorm.DB, keys []order.BuyerKey) (map[order.BuyerKey]order.UsedKey, error) {
	found := map[order.BuyerKey]order.UsedKey{}
	if len(keys) == 0 {
		return found, nil
	}
	pair := func(k order.BuyerKey) []any { return []any{k.Buyer, k.Key} }
	type keyRow struct{ Buyer, IdempotencyKey, Fingerprint, OrderID string }
	var rows []keyRow
	err := oneOf(db.Table("idempotency_keys"), "buyer = ? AND idempotency_key = ?", keys, pair).Find(&rows).Error
	if err != nil || len(rows) == 0 { // most keys are new, so the first query does not join the orders
		return found, err
	}
	orders, err := find(db.Where("id IN ?", order.Map(rows, func(row keyRow) string { return row.OrderID })))
	for _, row := range rows {
		if i := slices.IndexFunc(orders, func(o orderRow) bool { return o.ID == row.OrderID }); i >= 0 {
			key := order.BuyerKey{Buyer: row.Buyer, Key: row.IdempotencyKey}
			found[key] = order.UsedKey{Order: orders[i].order(), Fingerprint: row.Fingerprint}
		}
	}
	return found, err
}

// oneOf narrows a query to the rows with one of these pairs of values. All databases answer this form,
// and no other, from the index.
func oneOf[K any](query *gorm.DB, pair string, keys []K, values func(K) []any) *gorm.DB {
	return query.Where(pair+strings.Repeat(" OR "+pair, len(keys)-1), slices.Concat(order.Map(keys, values)...)...)
}

// PurgeKeys deletes the idempotency keys that are older than keep, by the database's clock, the oldest first, and
// returns the number of deleted keys. A key that is older than its order stays until the order is older
// than keep. Until it is deleted, a key counts, however old it is. Several purges may run at once. keep
// must be longer than it takes to place an order.
func (s *Store) PurgeKeys(ctx context.Context, keep time.Duration) (purged int, err error) {
	now, err := s.Now(ctx)
	if err != nil {
		return 0, err
	}
	before := dbTime{now.Add(-keep)}
	// The mark is written first, because the audit expects the keys of all orders since the mark.
	err = s.db.WithContext(ctx).Exec("UPDATE idempotency_purge SET purged_until = ? WHERE purged_until < ?", before, before).Error
	for deleted := 1; err == nil && deleted > 0; purged += deleted {
		err = s.inTx(ctx, func(t *tx) (err error) {
			deleted, err = t.purge(before)
			return err
		})
	}
	return purged, explain(ctx, "purge idempotency keys", err)
}

// purge finds a hundred keys by their age and deletes each by its primary key. A DELETE by age would wait for keys that
// buyers insert, and so would a DELETE of many keys, for which MariaDB scans the table. Each DELETE compares the age
// again: another purge may have deleted the key, and a buyer may have used it again. An order may be younger than its
// key, which is written first. The audit knows only the age of the order.
func (t *tx) purge(before dbTime) (purged int, err error) {
	var old []order.BuyerKey
	err = t.db.Table("idempotency_keys AS k").Joins("LEFT JOIN orders AS o ON o.id = k.order_id").
		Select("k.buyer, k.idempotency_key AS `key`").
		Where("k.created_at < ? AND (o.created_at < ? OR o.id IS NULL)", before, before).Order("k.created_at").Limit(100).Find(&old).Error
	slices.SortFunc(old, byPrimaryKey)
	for _, k := range old {
		done := t.db.Exec("DELETE FROM idempotency_keys WHERE buyer = ? AND idempotency_key = ? AND created_at < ?", k.Buyer, k.Key, before)
		if done.Error != nil {
			return 0, done.Error
		}
		purged += int(done.RowsAffected)
	}
	return purged, err
}

package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
)

const claimTries = 4 // of keys that others claim at the same time

// ClaimKeys implements order.Tx. If another transaction with the same key still runs, the statement waits for it: then the
// key is either taken, or free again because that transaction rolled back.
//
// Most keys are new. Those on record are read only if the database refuses one of the rows; it may refuse another one
// then, which a transaction has committed meanwhile, and one may have been purged before it is read.
func (t *tx) ClaimKeys(claims ...order.UsedKey) (map[order.BuyerKey]order.UsedKey, error) {
	free := slices.SortedFunc(slices.Values(claims), func(a, b order.UsedKey) int { return byPrimaryKey(keyOf(a), keyOf(b)) })
	taken := map[order.BuyerKey]order.UsedKey{}
	err := t.insertKeys(free...)
	for try := 0; try < claimTries && errors.Is(err, order.ErrKeyTaken); try++ {
		keys := make([]order.BuyerKey, len(free))
		for i, c := range free {
			keys[i] = keyOf(c)
		}
		found, unread := t.store.usedKeys(t.db, keys)
		if unread != nil {
			return nil, failed(unread, "read keys")
		}
		maps.Copy(taken, found)
		free = slices.DeleteFunc(free, func(c order.UsedKey) bool {
			_, known := found[keyOf(c)]
			return known
		})
		err = t.insertKeys(free...)
	}
	if errors.Is(err, order.ErrKeyTaken) {
		err = order.ErrBusy
	}
	return taken, failed(err, "claim keys")
}

func keyOf(c order.UsedKey) order.BuyerKey {
	return order.BuyerKey{Buyer: c.Order.Buyer, Key: c.Order.Key}
}

func byPrimaryKey(a, b order.BuyerKey) int {
	return cmp.Or(cmp.Compare(a.Buyer, b.Buyer), cmp.Compare(a.Key, b.Key))
}

// FreeKeys implements order.Tx. Each row is deleted by its primary key, as in purge.
func (t *tx) FreeKeys(keys ...order.BuyerKey) error {
	for _, k := range keys {
		err := t.db.Exec("DELETE FROM idempotency_keys WHERE buyer = ? AND idempotency_key = ?", k.Buyer, k.Key).Error
		if err != nil {
			return failed(err, "free key")
		}
	}
	return nil
}

func (t *tx) insertKeys(claims ...order.UsedKey) error {
	if len(claims) == 0 {
		return nil
	}
	row := "(?, ?, ?, ?, " + t.store.clock + ")"
	values := make([]any, 0, 4*len(claims))
	for _, c := range claims {
		values = append(values, c.Order.Buyer, c.Order.Key, c.Fingerprint, c.Order.ID)
	}
	err := t.db.Exec("INSERT INTO `idempotency_keys` (buyer, idempotency_key, fingerprint, order_id, created_at) VALUES "+
		row+strings.Repeat(", "+row, len(claims)-1), values...).Error
	switch classify(err) {
	case duplicate:
		return order.ErrKeyTaken
	case lockWait:
		return order.ErrInProgress // not wrapped: a lock wait is order.ErrBusy elsewhere
	default:
		return err
	}
}

// UsedKeys implements order.Store.
func (s *Store) UsedKeys(ctx context.Context, keys ...order.BuyerKey) (map[order.BuyerKey]order.UsedKey, error) {
	found, err := s.usedKeys(s.db.WithContext(ctx), keys)
	return found, explain(ctx, "read idempotency keys", err)
}

func (s *Store) usedKeys(db *gorm.DB, keys []order.BuyerKey) (map[order.BuyerKey]order.UsedKey, error) {
	found := map[order.BuyerKey]order.UsedKey{}
	if len(keys) == 0 {
		return found, nil
	}
	// The only form of "one of these pairs" that all databases answer from the index.
	pairs := "buyer = ? AND idempotency_key = ?" + strings.Repeat(" OR buyer = ? AND idempotency_key = ?", len(keys)-1)
	values := make([]any, 0, 2*len(keys))
	for _, k := range keys {
		values = append(values, k.Buyer, k.Key)
	}
	var rows []struct{ Buyer, IdempotencyKey, Fingerprint, OrderID string }
	err := db.Table("idempotency_keys").Where(pairs, values...).Find(&rows).Error
	if err != nil || len(rows) == 0 { // most keys are new, so the orders are not joined above
		return found, err
	}
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.OrderID
	}
	orders, err := read(db, db.Where("id IN ?", ids))
	for _, o := range orders {
		for _, row := range rows {
			if row.OrderID == o.ID {
				found[order.BuyerKey{Buyer: row.Buyer, Key: row.IdempotencyKey}] = order.UsedKey{Order: o, Fingerprint: row.Fingerprint}
			}
		}
	}
	return found, err
}

// PurgeKeys deletes the idempotency keys that were written longer than keep ago, by the database's clock, the oldest
// first, and returns how many. A key that is not purged yet counts, however old it is. Several purges may run at once.
// keep must be longer than any order takes to be placed.
func (s *Store) PurgeKeys(ctx context.Context, keep time.Duration) (purged int, err error) {
	now, err := s.Now(ctx)
	if err != nil {
		return 0, err
	}
	before := dbTime{now.Add(-keep)}
	// The mark is written first: the audit expects the keys of all orders since the mark.
	err = s.db.WithContext(ctx).Exec("UPDATE idempotency_purge SET purged_until = ? WHERE purged_until < ?", before, before).Error
	for err == nil {
		deleted := 0
		err = s.inTx(ctx, func(t *tx) (err error) {
			deleted, err = t.purge(before)
			return err
		})
		purged += deleted
		if deleted == 0 {
			break
		}
	}
	return purged, explain(ctx, "purge idempotency keys", err)
}

// purge finds a hundred keys by their age and deletes each by its primary key. A DELETE by age would wait for keys that buyers
// insert, and so would one of many keys, for which MariaDB scans the table. The age is compared again, because another
// purge may have deleted the key and a buyer may have used it again.
func (t *tx) purge(before dbTime) (purged int, err error) {
	var old []order.BuyerKey
	err = t.db.Table("idempotency_keys").Select("buyer, idempotency_key AS `key`").
		Where("created_at < ?", before).Order("created_at").Limit(100).Find(&old).Error
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

package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/order"
)

type keyRow struct {
	Buyer          string `gorm:"primaryKey"`
	IdempotencyKey string `gorm:"primaryKey"`
	Fingerprint    string
	OrderID        string
	CreatedAt      dbTime // by the database's clock
}

func (keyRow) TableName() string { return "idempotency_keys" }

// ClaimKeys implements order.Tx. A transaction with the same key that still runs holds its row: the statement waits
// for it. Then the key is either taken, or free again because that transaction rolled back. The rows come in the
// sequence of their primary key, so that of two transactions with some keys in common one waits for the other, never
// each.
func (t *tx) ClaimKeys(drafts ...*order.Draft) error {
	rows := make([]keyRow, len(drafts))
	for i, d := range drafts {
		rows[i] = keyRow{Buyer: d.Buyer, IdempotencyKey: d.Key, Fingerprint: d.Fingerprint, OrderID: d.ID}
	}
	slices.SortFunc(rows, func(a, b keyRow) int {
		return cmp.Or(cmp.Compare(a.Buyer, b.Buyer), cmp.Compare(a.IdempotencyKey, b.IdempotencyKey))
	})
	return t.do("claim keys", func() error { return t.insertKeys(rows...) })
}

// ClaimEnd implements order.Tx.
func (t *tx) ClaimEnd(o order.Order, key, fingerprint string) error {
	var taken error
	err := t.do("claim key", func() error {
		err := t.insertKeys(keyRow{Buyer: o.Buyer, IdempotencyKey: key, Fingerprint: fingerprint, OrderID: o.ID})
		if order.Code(err) == order.ErrKeyTaken.Code {
			taken, err = err, nil // the transaction may go on
		}
		return err
	})
	return cmp.Or(err, taken)
}

func (t *tx) insertKeys(rows ...keyRow) error {
	if len(rows) == 0 {
		return nil
	}
	row := "(?, ?, ?, ?, " + t.store.clock + ")"
	values := make([]any, 0, 4*len(rows))
	for _, r := range rows {
		values = append(values, r.Buyer, r.IdempotencyKey, r.Fingerprint, r.OrderID)
	}
	err := t.db.Exec("INSERT INTO `idempotency_keys` (buyer, idempotency_key, fingerprint, order_id, created_at) VALUES "+
		row+strings.Repeat(", "+row, len(rows)-1), values...).Error
	switch classify(err) {
	case duplicate:
		return order.ErrKeyTaken
	case lockWait:
		return order.ErrInProgress // without its cause: it must not be taken for a busy database
	default:
		return err
	}
}

// Claims implements order.Store.
func (s *Store) Claims(ctx context.Context, keys ...order.BuyerKey) (map[order.BuyerKey]order.Claim, error) {
	found := map[order.BuyerKey]order.Claim{}
	if len(keys) == 0 {
		return found, nil
	}
	// The only form of "one of these pairs" that all databases answer from the index.
	pairs := "buyer = ? AND idempotency_key = ?" + strings.Repeat(" OR buyer = ? AND idempotency_key = ?", len(keys)-1)
	values := make([]any, 0, 2*len(keys))
	for _, k := range keys {
		values = append(values, k.Buyer, k.Key)
	}
	var claimed []keyRow
	if err := s.db.WithContext(ctx).Where(pairs, values...).Find(&claimed).Error; err != nil {
		return nil, explain(ctx, "read keys", err)
	}
	if len(claimed) == 0 {
		return found, nil
	}
	ids := make([]string, len(claimed))
	for i, row := range claimed {
		ids[i] = row.OrderID
	}
	var rows []orderRow
	if err := s.db.WithContext(ctx).Where("id IN ?", ids).Find(&rows).Error; err != nil {
		return nil, explain(ctx, "read orders of keys", err)
	}
	orders, err := s.withLines(ctx, rows)
	if err != nil {
		return nil, err
	}
	byID := map[string]order.Order{}
	for _, o := range orders {
		byID[o.ID] = o
	}
	for _, row := range claimed {
		found[order.BuyerKey{Buyer: row.Buyer, Key: row.IdempotencyKey}] = order.Claim{Order: byID[row.OrderID], Fingerprint: row.Fingerprint}
	}
	return found, nil
}

// purgeBatch is how many keys one transaction deletes.
const purgeBatch = 100

// PurgeKeys deletes the idempotency keys that were written longer than keep ago, by the database's clock, the oldest
// first, and returns how many. Until then a key counts, however old it is. Several purges may run at once. keep must
// be longer than any order takes to be placed.
func (s *Store) PurgeKeys(ctx context.Context, keep time.Duration) (purged int, err error) {
	const what = "purge idempotency keys"
	now, err := s.Now(ctx)
	if err != nil {
		return 0, err
	}
	before := dbTime{now.Add(-keep)}
	// First the mark, so that no audit sees a key gone without it.
	err = s.db.WithContext(ctx).Exec("UPDATE idempotency_purge SET purged_until = ? WHERE purged_until < ?", before, before).Error
	for n := 1; err == nil && n > 0; purged += n {
		err = s.inTx(ctx, func(t *tx) (err error) {
			n, err = t.purge(before)
			return err
		})
		if err != nil {
			n = 0
		}
	}
	return purged, explain(ctx, what, err)
}

// purge finds keys by their age and deletes each by its name: a DELETE by age, or of many names, for which MariaDB
// reads the whole table, would lock the gaps between them, where buyers write. The age is compared again because a
// key may be in use again since it was found.
func (t *tx) purge(before dbTime) (purged int, err error) {
	var old []keyRow
	if err := t.db.Select("buyer", "idempotency_key").Where("created_at < ?", before).
		Order("created_at").Limit(purgeBatch).Find(&old).Error; err != nil {
		return 0, err
	}
	for _, key := range old {
		done := t.db.Where("buyer = ? AND idempotency_key = ? AND created_at < ?", key.Buyer, key.IdempotencyKey, before).Delete(&keyRow{})
		if done.Error != nil {
			return 0, done.Error
		}
		purged += int(done.RowsAffected)
	}
	return purged, nil
}

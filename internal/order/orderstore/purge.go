package orderstore

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/store"
)

// purgeBatch is how many keys one transaction deletes.
const purgeBatch = 100

// PurgeKeys deletes the idempotency keys that were written longer than keep ago,
// by the database's clock, the oldest first, and returns how many. Until then a
// key counts, however old it is. Several may run at once.
//
// keep must be longer than any order takes to be placed.
func (s *Store) PurgeKeys(ctx context.Context, keep time.Duration) (purged int, err error) {
	now, err := store.Now(ctx, s.db)
	if err != nil {
		return 0, fmt.Errorf("purge idempotency keys: %w", err)
	}
	before := store.Time{Time: now.Add(-keep)}
	// First the mark, so that no audit sees a key gone without it.
	err = s.db.WithContext(ctx).Exec("UPDATE idempotency_purge SET purged_until = ? WHERE purged_until < ?", before, before).Error
	for n := 1; err == nil && n > 0; purged += n {
		n, err = s.purgeBatch(ctx, before)
	}
	if err != nil {
		return purged, fmt.Errorf("purge idempotency keys: %w", err)
	}
	return purged, nil
}

// purgeBatch finds keys by their age and deletes each by its name: a DELETE by
// age, or of many names, for which MariaDB reads the whole table, would lock the
// gaps between them, where buyers write. The age is looked at again because a key
// may be in use again since it was found.
func (s *Store) purgeBatch(ctx context.Context, before store.Time) (purged int, err error) {
	err = store.InTx(ctx, s.db, func(tx *gorm.DB) error {
		purged = 0
		var old []keyRow
		if err := tx.Select("buyer", "idempotency_key").Where("created_at < ?", before).
			Order("created_at").Limit(purgeBatch).Find(&old).Error; err != nil {
			return err
		}
		for _, key := range old {
			done := tx.Where("buyer = ? AND idempotency_key = ? AND created_at < ?", key.Buyer, key.IdempotencyKey, before).Delete(&keyRow{})
			if done.Error != nil {
				return done.Error
			}
			purged += int(done.RowsAffected)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return purged, nil
}

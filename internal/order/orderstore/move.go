package orderstore

import (
	"fmt"

	"gorm.io/gorm/clause"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store"
)

// Move ends a pending order. One statement compares and writes, so that of all
// who would end the order one does: the others wait for its row, and then find
// it pending no more. The database's clock decides on which side of expires_at
// they are, whatever the instances' clocks say.
func (t *tx) Move(id string, to order.Status) (now order.Status, moved bool, err error) {
	inTime := "expires_at > "
	if to == order.Expired {
		inTime = "expires_at <= "
	}
	err = t.do(func() error {
		done := t.db.Model(&orderRow{}).
			Where("id = ? AND status = ? AND "+inTime+store.Clock(t.db), id, order.Pending).
			Update("status", to)
		if done.Error != nil {
			return fmt.Errorf("move order %s to %s: %w", id, to, done.Error)
		}
		if moved = done.RowsAffected > 0; moved {
			now = to
			return nil
		}
		var err error
		now, err = t.status(id)
		return err
	})
	return now, moved, err
}

// status reads FOR UPDATE, for the reason that stockstore.refusal has: a plain
// SELECT may show the row as it was before the statement that refused it.
func (t *tx) status(id string) (order.Status, error) {
	var row orderRow
	err := t.db.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).
		Select("status").Where("id = ?", id).Take(&row).Error
	if err != nil {
		return "", readError(err, "status of order "+id)
	}
	return order.Status(row.Status), nil
}

package orderstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
)

// PlacedAll returns the orders that these keys are about, with the fingerprints of
// the requests that had the keys. A key that is not there is not in the answer.
func (s *Store) PlacedAll(ctx context.Context, keys []order.BuyerKey) (map[order.BuyerKey]order.Claim, error) {
	found := map[order.BuyerKey]order.Claim{}
	if len(keys) == 0 {
		return found, nil
	}
	// The only form of "one of these pairs" that all databases answer from the index.
	pairs := strings.Repeat(" OR k.buyer = ? AND k.idempotency_key = ?", len(keys))[len(" OR "):]
	values := make([]any, 0, 2*len(keys))
	for _, k := range keys {
		values = append(values, k.Buyer, k.Key)
	}
	var rows []struct {
		Order       orderRow `gorm:"embedded"`
		Fingerprint string
		UsedKey     string
	}
	err := s.db.WithContext(ctx).Table("idempotency_keys AS k").
		Select("k.fingerprint, k.idempotency_key AS used_key, o.*").
		Joins("JOIN orders AS o ON o.id = k.order_id").
		Where(pairs, values...).
		Find(&rows).Error
	if err != nil {
		return nil, readError(err, "orders of keys")
	}
	bare := make([]orderRow, len(rows))
	for i, row := range rows {
		bare[i] = row.Order
	}
	orders, err := s.withLines(ctx, bare)
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		found[order.BuyerKey{Buyer: row.Order.Buyer, Key: row.UsedKey}] = order.Claim{Order: orders[i], Fingerprint: row.Fingerprint}
	}
	return found, nil
}

// ClaimKeys writes the rows of idempotency keys. A twin that is still running
// holds its row: the statement waits for it. Then the key is either taken, or free
// again because the twin rolled back. The rows come in the sequence of their primary
// key, so that of two transactions with some keys in common one waits for the other.
func (t *tx) ClaimKeys(claims ...order.Claim) error {
	rows := make([]keyRow, len(claims))
	for i, c := range claims {
		rows[i] = rowOfKey(c)
	}
	slices.SortFunc(rows, func(a, b keyRow) int {
		return cmp.Or(cmp.Compare(a.Buyer, b.Buyer), cmp.Compare(a.IdempotencyKey, b.IdempotencyKey))
	})
	return t.claim(func() *gorm.DB { return t.db.Create(&rows) })
}

// Add writes the orders, if there are any, with their lines, each in one statement for
// all orders.
func (t *tx) Add(orders ...order.Order) error {
	if len(orders) == 0 {
		return t.failed
	}
	rows := make([]orderRow, len(orders))
	var lines []lineRow
	for i, o := range orders {
		rows[i] = rowOfOrder(o)
		lines = append(lines, rowsOfLines(o)...)
	}
	return t.do(func() error {
		if err := t.db.Create(&rows).Error; err != nil {
			return fmt.Errorf("add %d orders: %w", len(rows), err)
		}
		if len(lines) == 0 {
			return nil
		}
		if err := t.db.Create(&lines).Error; err != nil {
			return fmt.Errorf("add lines of %d orders: %w", len(rows), err)
		}
		return nil
	})
}

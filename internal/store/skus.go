package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

type deliveryRow struct {
	SKU            string `gorm:"primaryKey"`
	IdempotencyKey string `gorm:"primaryKey"`
	MovementID     string
	Units          int64
	After          stock.Level `gorm:"embedded"` // the answer
}

func (deliveryRow) TableName() string { return "deliveries" }

// SKU returns the SKU called name as it is now, or order.ErrUnknownSKU.
func (s *Store) SKU(ctx context.Context, name string) (stock.SKU, error) {
	seen := s.changes()
	sku, err := readSKU(s.db.WithContext(ctx), name)
	return sku, s.confirm(ctx, seen, explain(ctx, fmt.Sprintf("read sku %q", name), err))
}

func readSKU(db *gorm.DB, name string) (stock.SKU, error) {
	var row skuRow
	err := db.Where("name = ?", name).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return stock.SKU{}, order.ErrUnknownSKU
	}
	return row.sku(), err
}

// List returns at most limit SKUs whose names sort after the given one, in the order of their names. An empty name
// begins with the first SKU.
func (s *Store) List(ctx context.Context, after string, limit int) ([]stock.SKU, error) {
	var rows []skuRow
	err := s.db.WithContext(ctx).Where("name > ?", after).Order("name").Limit(limit).Find(&rows).Error
	return order.Map(rows, skuRow.sku), explain(ctx, "list skus", err)
}

// Create creates SKUs, and adds the supply of their units to the ledger, all or nothing. A name that already exists is
// order.ErrExists, even if an earlier call that returned order.ErrUnknownOutcome has created it.
func (s *Store) Create(ctx context.Context, skus ...stock.SKU) error {
	return explain(ctx, "create skus", s.inTx(ctx, func(t *tx) error {
		byName := func(a, b stock.SKU) int { return cmp.Compare(a.Name, b.Name) }
		for _, sku := range slices.SortedFunc(slices.Values(skus), byName) {
			err := t.db.Create(&skuRow{
				Name: sku.Name, PriceMinor: sku.Price.Minor, Currency: sku.Price.Currency, LimitPerBuyer: sku.LimitPerBuyer,
				Level: sku.Level, Fence: sku.Fence, CreatedAt: dbTime{sku.CreatedAt},
			}).Error
			if classify(err) == duplicate {
				return fmt.Errorf("sku %q: %w", sku.Name, order.ErrExists)
			}
			if err == nil {
				err = t.Record(stock.Movement{ID: order.NewID(), SKU: sku.Name, Kind: stock.Supply, Level: sku.Level, At: sku.CreatedAt})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// SetLimitPerBuyer sets the number of units of a SKU that a buyer may have, 0 for no limit, and returns the SKU after
// the change. Existing orders stay, and count: the units of each buyer are added up again, and no order of the SKU is
// placed meanwhile. Nothing was changed after order.ErrUnknownSKU, or stock.ErrInvalid for a limit that
// stock.CheckLimit refuses. After order.ErrUnknownOutcome, repeating the call is safe.
func (s *Store) SetLimitPerBuyer(ctx context.Context, sku string, perBuyer int64) (after stock.SKU, err error) {
	if err := stock.CheckLimit(perBuyer); err != nil {
		return stock.SKU{}, fmt.Errorf("sku %q: %w", sku, err)
	}
	seen := s.changes()
	err = s.inTx(ctx, func(t *tx) error {
		if err := mustMatch(t.db, order.ErrUnknownSKU, "UPDATE skus SET limit_per_buyer = ? WHERE name = ?", perBuyer, sku); err != nil {
			return err
		}
		if err := t.db.Exec("DELETE FROM buyer_units WHERE sku = ?", sku).Error; err != nil {
			return err
		}
		if err := t.db.Exec(countUnits, sku).Error; err != nil {
			return err
		}
		after, err = readSKU(t.db, sku)
		return err
	})
	return after, s.confirm(ctx, seen, explain(ctx, fmt.Sprintf("limit sku %q per buyer", sku), err))
}

// countUnits adds up the units of a limited SKU for each buyer. The SKU's row is locked: no order of it begins or ends.
const countUnits = `
	INSERT INTO buyer_units SELECT l.sku, o.buyer, SUM(l.units)
	FROM skus AS s JOIN order_lines AS l ON l.sku = s.name JOIN orders AS o ON o.id = l.order_id
	WHERE s.name = ? AND s.limit_per_buyer > 0 AND o.status IN ('pending', 'paid') GROUP BY l.sku, o.buyer`

// Supply books a delivery: the units and their movement, both or neither. It returns the SKU after the delivery. A repeated
// delivery changes nothing and returns the first result, with replayed true; with another number of units, it is
// order.ErrKeyReused. A SKU that does not exist is order.ErrUnknownSKU. A SKU that would have more than stock.MaxUnits is
// stock.ErrInvalid. After order.ErrUnknownOutcome, repeating the call is safe and returns the outcome.
func (s *Store) Supply(ctx context.Context, d stock.Delivery) (after stock.SKU, replayed bool, err error) {
	if d.Units < 1 || d.Units > stock.MaxUnits {
		return stock.SKU{}, false, fmt.Errorf("%w: sku %q: units: want 1 to %d", stock.ErrInvalid, d.SKU, int64(stock.MaxUnits))
	}
	seen := s.changes()
	err = s.inTx(ctx, func(t *tx) error {
		// The key comes first, so that the statement waits for a running transaction with the same key.
		booked := deliveryRow{SKU: d.SKU, IdempotencyKey: d.Key, MovementID: order.NewID(), Units: d.Units}
		err := t.db.Create(&booked).Error
		replayed = classify(err) == duplicate
		switch {
		case replayed:
			after, err = replayDelivery(t.db, d)
		case err == nil:
			after, err = t.addUnits(d, booked)
		}
		return err
	})
	return after, replayed && err == nil, s.confirm(ctx, seen, explain(ctx, fmt.Sprintf("supply sku %q", d.SKU), err))
}

// addUnits adds a delivery's units to its SKU. The UPDATE locks the row, so that the read after it returns the level that
// this delivery has made.
func (t *tx) addUnits(d stock.Delivery, booked deliveryRow) (stock.SKU, error) {
	err := t.Move(stock.Movement{ID: booked.MovementID, SKU: d.SKU, Kind: stock.Supply, Level: stock.Supply.Change(d.Units), At: d.At})
	if errors.Is(err, order.ErrChanged) {
		err = order.ErrUnknownSKU
	}
	if err != nil {
		return stock.SKU{}, err
	}
	after, err := readSKU(t.db, d.SKU)
	if err != nil {
		return stock.SKU{}, err
	}
	if after.Supplied > stock.MaxUnits {
		return stock.SKU{}, fmt.Errorf("%w: sku %q: units: %d were already supplied, and the total may be %d at most",
			stock.ErrInvalid, d.SKU, after.Supplied-d.Units, int64(stock.MaxUnits))
	}
	booked.After = after.Level
	return after, t.db.Save(&booked).Error
}

// replayDelivery returns the answer to the first delivery with this key.
func replayDelivery(db *gorm.DB, d stock.Delivery) (stock.SKU, error) {
	var first deliveryRow
	if err := db.Where("sku = ? AND idempotency_key = ?", d.SKU, d.Key).Take(&first).Error; err != nil {
		return stock.SKU{}, err
	}
	if first.Units != d.Units {
		return stock.SKU{}, order.ErrKeyReused
	}
	then, err := readSKU(db, d.SKU)
	then.Level = first.After
	return then, err
}

// Movements returns at most limit rows of a SKU's ledger whose ids sort after the given one; an empty id begins with
// the first row. Ids sort by their creation, which is shortly before the COMMIT: a concurrent change may add a row
// before a row that was already returned. A SKU that does not exist is order.ErrUnknownSKU.
func (s *Store) Movements(ctx context.Context, sku, after string, limit int) ([]stock.Movement, error) {
	if _, err := s.SKU(ctx, sku); err != nil {
		return nil, err
	}
	var rows []movementRow
	err := s.db.WithContext(ctx).Where("sku = ? AND id > ?", sku, after).Order("id").Limit(limit).Find(&rows).Error
	return order.Map(rows, movementRow.movement), explain(ctx, fmt.Sprintf("read ledger of %q", sku), err)
}

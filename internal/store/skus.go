package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

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
// the change. Existing orders stay, and count. If the SKU had no limit, the units of each buyer are added up, while the
// SKU is for sale without a limit. Nothing was changed after order.ErrUnknownSKU, or stock.ErrInvalid for a limit that
// stock.CheckLimit refuses, or order.ErrBusy. After order.ErrUnknownOutcome, the SKU may be without a limit; repeating
// the call is safe. If a call begins while another one counts, one of them returns one of these two errors.
func (s *Store) SetLimitPerBuyer(ctx context.Context, sku string, perBuyer int64) (after stock.SKU, err error) {
	if err := stock.CheckLimit(perBuyer); err != nil {
		return stock.SKU{}, fmt.Errorf("sku %q: %w", sku, err)
	}
	seen, needed, c := s.changes(), false, recount{sku, time.Now().UnixNano()}
	err = s.inTx(ctx, func(t *tx) (err error) {
		needed, err = c.begin(t, perBuyer)
		return err
	})
	if err == nil {
		if needed {
			err = s.recount(ctx, c, perBuyer)
		}
		if err == nil {
			after, err = readSKU(s.db.WithContext(ctx), sku)
		}
		if err != nil {
			err = fmt.Errorf("%w: the SKU may be without a limit: %s", order.ErrUnknownOutcome, err.Error())
		}
	}
	return after, s.confirm(ctx, seen, explain(ctx, fmt.Sprintf("limit sku %q per buyer", sku), err))
}

// recount counts the units of each buyer of a SKU that gets a limit, or deletes the counts of a SKU that loses its
// limit. Until this is done, buyer_units has a row of the SKU without a buyer: the audit does not compare the counts,
// and the next change of the limit counts again.
type recount struct {
	sku string
	id  int64 // in that row; a later recount replaces it
}

// begin sets the limit if the counts can stay. Otherwise it removes the limit, so that orders leave the counts alone.
func (c recount) begin(t *tx, perBuyer int64) (needed bool, err error) {
	before, err := readSKU(t.db.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}), c.sku)
	if err != nil {
		return false, err
	}
	mark := order.BuyerSKU{SKU: c.sku}
	marked, others, err := t.LockBought(mark)
	if len(others) > 0 {
		return false, order.ErrLocked // by a recount in progress, for which orders of the SKU must not wait
	}
	_, needed = marked[mark]
	if err == nil && (needed || (before.LimitPerBuyer > 0) != (perBuyer > 0)) {
		needed, perBuyer = true, 0
		err = t.db.Exec("REPLACE INTO buyer_units VALUES (?, '', ?)", c.sku, c.id).Error
	}
	if err != nil {
		return false, err
	}
	return needed, t.db.Exec("UPDATE skus SET limit_per_buyer = ? WHERE name = ?", perBuyer, c.sku).Error
}

// isLatest returns order.ErrBusy if a later recount has begun. Otherwise, none begins before t has ended.
func (c recount) isLatest(t *tx) error {
	return mustMatch(t.db, order.ErrBusy, "UPDATE buyer_units SET units = units WHERE sku = ? AND buyer = '' AND units = ?", c.sku, c.id)
}

// set locks the row of the SKU and sets the limit.
func (c recount) set(t *tx, perBuyer int64) error {
	if err := t.db.Exec("UPDATE skus SET limit_per_buyer = ? WHERE name = ?", perBuyer, c.sku).Error; err != nil {
		return err
	}
	return c.isLatest(t)
}

// recount deletes the counts, and counts again if there is a limit. One recount at a time runs.
func (s *Store) recount(ctx context.Context, c recount, perBuyer int64) error {
	select {
	case s.counts <- struct{}{}:
		defer func() { <-s.counts }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := s.inTx(ctx, func(t *tx) error {
		if err := c.isLatest(t); err != nil {
			return err
		}
		return t.db.Exec("DELETE FROM buyer_units WHERE sku = ? AND buyer > ''", c.sku).Error
	})
	if err == nil && perBuyer > 0 {
		err = s.countOrders(ctx, c)
	}
	if err != nil {
		return err
	}
	return s.inTx(ctx, func(t *tx) error {
		if err := c.set(t, perBuyer); err != nil {
			return err
		}
		return t.db.Exec("DELETE FROM buyer_units WHERE sku = ? AND buyer = ''", c.sku).Error
	})
}

// countOrders makes orders count from one moment on, and adds the orders that existed at this moment. One statement
// reads all orders from one snapshot. (It also reads ended orders: a filter would delay its first row.) The row of the
// SKU is locked when the snapshot is taken, so that no order of the SKU begins or ends, and free while the units are
// added. Until all units are added, the limit is the highest, which refuses no order.
func (s *Store) countOrders(ctx context.Context, c recount) error {
	conn, err := s.pool.Conn(ctx) // before the row is locked: the transactions that wait for the row may use up the pool
	if err != nil {
		return err
	}
	defer conn.Close()
	const query = `
		SELECT o.buyer, CASE WHEN o.status IN ('pending', 'paid') THEN l.units ELSE 0 END
		FROM order_lines AS l JOIN orders AS o ON o.id = l.order_id WHERE l.sku = ?`
	var rows *sql.Rows
	more := false
	// Sharing waits for the row for a second at most: after two, the server would end the idle conn.
	err = s.Sharing().inTx(ctx, func(t *tx) (err error) {
		if err := c.set(t, stock.MaxUnits); err != nil {
			return err
		}
		if rows != nil { // of an attempt before
			_ = rows.Close()
		}
		rows, err = conn.QueryContext(ctx, query, c.sku) //nolint:rowserrcheck,sqlclosecheck // below
		more = err == nil && rows.Next()                 // with the first row, the snapshot is taken
		return err
	})
	if rows == nil {
		return err
	}
	defer rows.Close() // rows.Err returns its error
	for err == nil && more {
		bought := map[order.BuyerSKU]int64{} // not all units of these buyers: AddBought adds
		for ; err == nil && more && len(bought) < 1_000; more = rows.Next() {
			of, units := order.BuyerSKU{SKU: c.sku}, int64(0)
			err = rows.Scan(&of.Buyer, &units)
			bought[of] += units
		}
		if err == nil {
			err = s.inTx(ctx, func(t *tx) error { // a short one, because orders of a buyer wait for the buyer's row
				if err := c.isLatest(t); err != nil {
					return err
				}
				return t.AddBought(bought)
			})
		}
	}
	if err != nil {
		return err
	}
	return rows.Err()
}

// Supply books a delivery: the units and their movement, both or neither. It returns the SKU after the
// delivery. A repeated delivery changes nothing and returns the first result, with replayed true; with
// another number of units, it is order.ErrKeyReused. A SKU that does not exist is order.ErrUnknownSKU.
// A SKU that would have more than stock.MaxUnits is stock.ErrInvalid. After order.ErrUnknownOutcome,
// repeating the call is safe and returns the outcome.
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

// addUnits adds a delivery's units to its SKU. The UPDATE locks the row, so that the read after it
// returns the level that this delivery has made.
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

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

type skuRow struct {
	Name          string `gorm:"primaryKey"`
	PriceMinor    int64
	Currency      string
	LimitPerBuyer int64
	Level         stock.Level `gorm:"embedded"`
	Fence         int64
	CreatedAt     dbTime
}

func (skuRow) TableName() string { return "skus" }

func (r skuRow) sku() stock.SKU {
	return stock.SKU{
		Name: r.Name, Price: stock.Money{Minor: r.PriceMinor, Currency: r.Currency}, LimitPerBuyer: r.LimitPerBuyer,
		Level: r.Level, Fence: r.Fence, CreatedAt: r.CreatedAt.Time,
	}
}

type movementRow struct {
	SKU       string `gorm:"primaryKey"`
	ID        string `gorm:"primaryKey"`
	Kind      string
	OrderID   sql.NullString
	Change    stock.Level `gorm:"embedded"`
	Fence     int64
	CreatedAt dbTime
}

func (movementRow) TableName() string { return "movements" }

type deliveryRow struct {
	SKU            string `gorm:"primaryKey"`
	IdempotencyKey string `gorm:"primaryKey"`
	MovementID     string
	Units          int64
	After          stock.Level `gorm:"embedded"` // as it was answered
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

// Levels implements order.Store.
func (s *Store) Levels(ctx context.Context, lines ...order.Line) (order.Levels, error) {
	seen := s.changes()
	wanted := order.Order{Lines: lines}
	levels, err := s.levels(s.db.WithContext(ctx), wanted.SKUs())
	if err == nil && levels.Cover(&order.Draft{Order: wanted}) != nil {
		err = s.doubt(ctx, seen)
	}
	return levels, s.confirm(ctx, seen, explain(ctx, fmt.Sprintf("read levels of %q", wanted.SKUs()), err))
}

// LockLevels implements order.Tx. Rows are locked in the order of their names.
func (t *tx) LockLevels(skus []string) (levels order.Levels, err error) {
	levels, err = t.store.levels(t.db.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Order("name"), skus)
	return levels, failed(err, "lock levels of %q", skus)
}

// TryLevels implements order.Tx. A SELECT can have a time limit in milliseconds; InnoDB's own limit has whole seconds.
// (MariaDB reads the first comment as SQL, and MySQL the second.) If all rows are still locked, it waits again: in a crowd
// of transactions that commit, each waits for the ones before it.
func (t *tx) TryLevels(skus []string, within time.Duration) (order.Levels, error) {
	if len(skus) == 0 || t.store.IsSQLite() { // where no other transaction writes
		return t.LockLevels(skus)
	}
	wait := fmt.Sprintf("/*M!100101 SET STATEMENT max_statement_time=%f FOR */ SELECT /*+ MAX_EXECUTION_TIME(%d) */ ", within.Seconds(), within.Milliseconds())
	what := "*, " + t.store.clock + " AS read_at FROM skus FORCE INDEX (PRIMARY) WHERE name IN ? ORDER BY name FOR UPDATE"
	for try := 1; ; try++ {
		var rows []levelRow
		err := t.db.Raw(wait+what, skus).Scan(&rows).Error
		if kind := classify(err); (kind == interrupted || kind == lockWait) && t.db.Statement.Context.Err() == nil {
			rows = nil
			err = t.db.Raw("SELECT "+what+" SKIP LOCKED", skus).Scan(&rows).Error
			if err == nil && len(rows) == 0 && try < 3 {
				continue
			}
		}
		return toLevels(rows), failed(err, "lock levels of %q", skus)
	}
}

type levelRow struct {
	SKU    skuRow `gorm:"embedded"`
	ReadAt dbTime
}

func toLevels(rows []levelRow) order.Levels {
	levels := order.Levels{SKUs: map[string]stock.SKU{}}
	for _, row := range rows {
		levels.SKUs[row.SKU.Name], levels.At = row.SKU.sku(), row.ReadAt.Time
	}
	return levels
}

func (s *Store) levels(db *gorm.DB, names []string) (order.Levels, error) {
	if len(names) == 0 {
		return order.Levels{}, nil
	}
	var rows []levelRow
	distinct := slices.Compact(slices.Sorted(slices.Values(names)))
	if err := db.Table("skus").Select("*, "+s.clock+" AS read_at").Where("name IN ?", distinct).Find(&rows).Error; err != nil {
		return order.Levels{}, err
	}
	levels := toLevels(rows)
	for _, name := range names {
		if _, known := levels.SKUs[name]; !known {
			return order.Levels{}, fmt.Errorf("sku %q: %w", name, order.ErrUnknownSKU)
		}
	}
	return levels, nil
}

// List returns at most limit SKUs whose names sort after the given one, in the order of their names. An empty name
// begins at the first.
func (s *Store) List(ctx context.Context, after string, limit int) ([]stock.SKU, error) {
	var rows []skuRow
	err := s.db.WithContext(ctx).Where("name > ?", after).Order("name").Limit(limit).Find(&rows).Error
	skus := make([]stock.SKU, len(rows))
	for i, row := range rows {
		skus[i] = row.sku()
	}
	return skus, explain(ctx, "list skus", err)
}

// Create adds SKUs and the supply of their units to the ledger, all or nothing. A name that exists already is
// order.ErrExists, also if an earlier call that returned order.ErrUnknownOutcome has created it.
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
				err = t.Record(stock.Movement{ID: order.NewID(), SKU: sku.Name, Kind: stock.Supply, Change: sku.Level, At: sku.CreatedAt})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// SetLimitPerBuyer sets how many units of a SKU a buyer may have, 0 for any number, and returns the SKU as it then is.
// Existing orders are not affected, and count: what each buyer has is added up anew, while no other order of the SKU is
// placed. order.ErrUnknownSKU, or stock.ErrInvalid for a limit that stock.CheckLimit refuses:
// nothing was changed. After order.ErrUnknownOutcome, repeating the call is safe.
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

// countUnits adds up what the buyers of a SKU have if it has a limit. The SKU's row is locked, so that none of its orders
// is placed or ended meanwhile.
const countUnits = `
	INSERT INTO buyer_units SELECT l.sku, o.buyer, SUM(l.units)
	FROM skus AS s JOIN order_lines AS l ON l.sku = s.name JOIN orders AS o ON o.id = l.order_id
	WHERE s.name = ? AND s.limit_per_buyer > 0 AND o.status IN ('pending', 'paid') GROUP BY l.sku, o.buyer`

// Supply books a delivery: the units and their movement, both or neither. It returns the SKU as it then is. The same
// delivery again changes nothing and returns what the first returned, with replayed true; with another number of units
// it is order.ErrKeyReused. A SKU that does not exist is order.ErrUnknownSKU, one that would have more than
// stock.MaxUnits is stock.ErrInvalid. After order.ErrUnknownOutcome, repeating the call is safe and returns the
// outcome.
func (s *Store) Supply(ctx context.Context, d stock.Delivery) (after stock.SKU, replayed bool, err error) {
	seen := s.changes()
	err = s.inTx(ctx, func(t *tx) error {
		// The key comes first: the statement waits for a transaction with the same key that still runs.
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

// addUnits adds the units of a delivery to its SKU. The UPDATE locks the row, so that the read after it returns the
// level that this delivery has made.
func (t *tx) addUnits(d stock.Delivery, booked deliveryRow) (stock.SKU, error) {
	err := t.Move(stock.Movement{
		ID: booked.MovementID, SKU: d.SKU, Kind: stock.Supply, Change: stock.Supply.Change(d.Units), At: d.At,
	})
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
	if after.Level.Supplied > stock.MaxUnits {
		return stock.SKU{}, fmt.Errorf("%w: sku %q: units: %d were supplied, and at most %d can be in all",
			stock.ErrInvalid, d.SKU, after.Level.Supplied-d.Units, int64(stock.MaxUnits))
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

// Record implements order.Tx.
func (t *tx) Record(movements ...stock.Movement) error {
	rows := make([]movementRow, len(movements))
	for i, m := range movements {
		rows[i] = movementRow{
			SKU: m.SKU, ID: m.ID, Kind: string(m.Kind), OrderID: sql.NullString{String: m.OrderID, Valid: m.OrderID != ""},
			Change: m.Change, Fence: m.Fence, CreatedAt: dbTime{m.At},
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return failed(t.db.Create(&rows).Error, "record %d movements", len(rows))
}

// Movements returns at most limit rows of a SKU's ledger whose ids sort after the given one; an empty one begins at the
// first. Ids sort by the time at which they were made, which is shortly before the row is committed: a concurrent
// change may add a row before one that was returned already. A SKU that does not exist is order.ErrUnknownSKU.
func (s *Store) Movements(ctx context.Context, sku, after string, limit int) ([]stock.Movement, error) {
	if _, err := s.SKU(ctx, sku); err != nil {
		return nil, err
	}
	var rows []movementRow
	err := s.db.WithContext(ctx).Where("sku = ? AND id > ?", sku, after).Order("id").Limit(limit).Find(&rows).Error
	ledger := make([]stock.Movement, len(rows))
	for i, r := range rows {
		ledger[i] = stock.Movement{
			ID: r.ID, SKU: r.SKU, Kind: stock.Kind(r.Kind), OrderID: r.OrderID.String,
			Change: r.Change, Fence: r.Fence, At: r.CreatedAt.Time,
		}
	}
	return ledger, explain(ctx, fmt.Sprintf("read ledger of %q", sku), err)
}

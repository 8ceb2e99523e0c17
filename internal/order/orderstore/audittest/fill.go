package audittest

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

const (
	skus  = 100
	left  = 50   // units of each SKU that nobody has bought
	price = 1250 // cents of a unit
	apart = time.Millisecond
	chunk = 1_000 // orders of one transaction
	hold  = 15 * time.Minute
)

// opened is when the first order came; the others follow, a millisecond apart.
var opened = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Fill writes orders into a migrated, empty database. The same number makes the
// same rows. It holds a few rows at a time.
func Fill(ctx context.Context, db *gorm.DB, orders int) error {
	var levels [skus]stock.Level
	var fences [skus]int64
	for from := 0; from < orders; from += chunk {
		err := write(ctx, db, func(w *writer) error {
			for i := from; i < min(from+chunk, orders); i++ {
				if err := w.order(i, &levels, &fences); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("orders from number %d: %w", from, err)
		}
	}
	return write(ctx, db, func(w *writer) error {
		for i, level := range levels {
			if err := w.sku(i, level, fences[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// writer writes rows in one transaction.
type writer struct {
	ctx                                  context.Context
	skus, orders, lines, movements, keys *bulk
}

func write(ctx context.Context, db *gorm.DB, rows func(*writer) error) error {
	conns, err := db.DB()
	if err != nil {
		return err
	}
	tx, err := conns.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after the commit it does nothing
	table := func(name string, columns ...string) *bulk { return &bulk{tx: tx, table: name, columns: columns} }
	w := &writer{
		ctx:    ctx,
		skus:   table("skus", "name", "price_minor", "currency", "supplied", "available", "reserved", "sold", "fence", "created_at"),
		orders: table("orders", "id", "buyer", "idempotency_key", "status", "total_minor", "currency", "created_at", "expires_at"),
		lines:  table("order_lines", "order_id", "sku", "line_no", "units", "price_minor", "currency"),
		movements: table("movements",
			"sku", "id", "kind", "order_id", "supplied", "available", "reserved", "sold", "fence", "created_at"),
		keys: table("idempotency_keys", "buyer", "idempotency_key", "fingerprint", "order_id", "created_at"),
	}
	if err := rows(w); err != nil {
		return err
	}
	for _, b := range []*bulk{w.skus, w.orders, w.lines, w.movements, w.keys} {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// ends is what becomes of orders: of ten, six are paid.
var ends = [...]order.Status{
	order.Paid, order.Expired, order.Paid, order.Pending, order.Paid,
	order.Cancelled, order.Paid, order.Expired, order.Paid, order.Paid,
}

// lines is how many lines orders have.
var lines = [...]int{1, 1, 1, 1, 1, 1, 1, 1, 2, 3}

// order writes the order of a number, and counts its units and fences.
func (w *writer) order(number int, levels *[skus]stock.Level, fences *[skus]int64) error {
	at := opened.Add(time.Duration(number) * apart)
	id := uuid(at, number)
	buyer, key := fmt.Sprintf("buyer-%d", number%10_000), fmt.Sprintf("key-%d", number)
	status := ends[number/3%len(ends)]
	units := int64(0)
	for line := range lines[number%len(lines)] {
		sku, n := (number+37*line)%skus, int64(1+line)
		units += n
		if err := w.lines.add(w.ctx, id, skuName(sku), line+1, n, price, "EUR"); err != nil {
			return err
		}
		fences[sku]++
		reserve := stock.Level{Available: -n, Reserved: n}
		if err := w.move(sku, uuid(at, 2*line), stock.Reserve, id, reserve, fences[sku], at); err != nil {
			return err
		}
		level := add(levels[sku], stock.Level{Supplied: n, Reserved: n})
		if status != order.Pending {
			kind := stock.Release
			if status == order.Paid {
				kind = stock.Sell
			}
			change := stock.Settle(kind, n)
			level = add(level, change)
			if err := w.move(sku, uuid(at, 2*line+1), kind, id, change, 0, at.Add(time.Second)); err != nil {
				return err
			}
		}
		levels[sku] = level
	}
	err := w.orders.add(w.ctx, id, buyer, key, string(status), units*price, "EUR", store.Time{Time: at}, store.Time{Time: at.Add(hold)})
	if err != nil {
		return err
	}
	return w.keys.add(w.ctx, buyer, key, fmt.Sprintf("%064x", number), id, store.Time{Time: at})
}

// sku writes a SKU as its orders have left it, and its supply.
func (w *writer) sku(number int, level stock.Level, fence int64) error {
	level = add(level, stock.Level{Supplied: left, Available: left})
	supply := stock.Level{Supplied: level.Supplied, Available: level.Supplied}
	if err := w.move(number, uuid(opened.Add(-time.Hour), number), stock.Supply, nil, supply, 0, opened); err != nil {
		return err
	}
	return w.skus.add(w.ctx, skuName(number), price, "EUR", level.Supplied, level.Available, level.Reserved, level.Sold, fence,
		store.Time{Time: opened})
}

func (w *writer) move(sku int, id string, kind stock.Kind, order any, change stock.Level, fence int64, at time.Time) error {
	return w.movements.add(w.ctx, skuName(sku), id, string(kind), order,
		change.Supplied, change.Available, change.Reserved, change.Sold, fence, store.Time{Time: at})
}

func add(a, b stock.Level) stock.Level {
	return stock.Level{
		Supplied: a.Supplied + b.Supplied, Available: a.Available + b.Available,
		Reserved: a.Reserved + b.Reserved, Sold: a.Sold + b.Sold,
	}
}

func skuName(number int) string { return fmt.Sprintf("sku-%02d", number) }

// uuid is a UUIDv7 of a moment, with a number where others have dice.
func uuid(at time.Time, number int) string {
	ms := at.UnixMilli()
	return fmt.Sprintf("%08x-%04x-7000-8000-%012x", ms>>16, ms&0xffff, number)
}

package storetest

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

const (
	skus  = 100
	left  = 50  // units of each SKU that nobody has bought
	chunk = 500 // orders of one transaction
	hold  = 15 * time.Minute
)

var (
	// opened is when the first order came; the others follow, a millisecond apart.
	opened = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	price  = stock.Money{Minor: 1250, Currency: "EUR"}
)

// Fill writes orders into a migrated, empty database, as a shop would have left them: of one to three lines, pending,
// paid, cancelled and expired, each with its key, its fences and its movements. The audit finds no difference. The
// same number makes the same orders. It holds a few of them at a time.
func Fill(ctx context.Context, s *store.Store, orders int) error {
	var levels [skus]stock.Level
	var fences [skus]int64
	for from := 0; from < orders; from += chunk {
		var drafts []*order.Draft
		var written []order.Order
		var movements []stock.Movement
		for number := from; number < min(from+chunk, orders); number++ {
			d, moved := fillOrder(number, &levels, &fences)
			drafts, written, movements = append(drafts, d), append(written, d.Order), append(movements, moved...)
		}
		err := s.InTx(ctx, nil, func(tx order.Tx) error {
			_ = tx.ClaimKeys(drafts...)
			_ = tx.Insert(written...)
			return tx.Record(movements...)
		})
		if err != nil {
			return fmt.Errorf("orders from number %d: %w", from, err)
		}
	}
	for i, l := range levels {
		units := left + l.Reserved + l.Sold
		sku, err := stock.NewSKU(skuName(i), price, units, opened)
		if err == nil {
			err = s.Create(ctx, sku)
		}
		if err == nil {
			_, err = s.DB().ExecContext(ctx, "UPDATE skus SET available = ?, reserved = ?, sold = ?, fence = ? WHERE name = ?",
				left, l.Reserved, l.Sold, fences[i], sku.Name)
		}
		if err != nil {
			return fmt.Errorf("sku %d: %w", i, err)
		}
	}
	return nil
}

// ends is what becomes of orders: of ten, six are paid.
var ends = [...]order.Status{
	order.Paid, order.Expired, order.Paid, order.Pending, order.Paid,
	order.Cancelled, order.Paid, order.Expired, order.Paid, order.Paid,
}

// lines is how many lines orders have.
var lines = [...]int{1, 1, 1, 1, 1, 1, 1, 1, 2, 3}

// fillOrder returns the order of a number with its movements, and counts its units and fences.
func fillOrder(number int, levels *[skus]stock.Level, fences *[skus]int64) (*order.Draft, []stock.Movement) {
	at := opened.Add(time.Duration(number) * time.Millisecond)
	d := &order.Draft{Order: order.Order{
		ID: uuid(at, number), Buyer: fmt.Sprintf("buyer-%d", number%10_000), Key: fmt.Sprintf("key-%d", number),
		Status: ends[number/3%len(ends)], Total: price.Times(0), CreatedAt: at, ExpiresAt: at.Add(hold),
	}}
	var movements []stock.Movement
	for line := range lines[number%len(lines)] {
		sku, units := (number+37*line)%skus, int64(1+line)
		d.Lines = append(d.Lines, order.Line{SKU: skuName(sku), Units: units, Price: price})
		d.Total.Minor += price.Times(units).Minor
		move := func(id string, kind stock.Kind, fence int64, at time.Time) {
			change := kind.Change(units)
			levels[sku].Reserved += change.Reserved
			levels[sku].Sold += change.Sold
			movements = append(movements, stock.Movement{
				ID: id, SKU: skuName(sku), Kind: kind, OrderID: d.ID, Change: change, Fence: fence, At: at,
			})
		}
		fences[sku]++
		move(uuid(at, 2*line), stock.Reserve, fences[sku], at)
		switch ended := uuid(at, 2*line+1); d.Status {
		case order.Paid:
			move(ended, stock.Sell, 0, at.Add(time.Second))
		case order.Cancelled, order.Expired:
			move(ended, stock.Release, 0, at.Add(time.Second))
		case order.Pending:
		}
	}
	d.Fingerprint = order.Fingerprint(d.Lines)
	return d, movements
}

func skuName(number int) string { return fmt.Sprintf("sku-%02d", number) }

// uuid is a UUIDv7 of a moment, with a number where others have dice.
func uuid(at time.Time, number int) string {
	ms := at.UnixMilli()
	return fmt.Sprintf("%08x-%04x-7000-8000-%012x", ms>>16, ms&0xffff, number)
}

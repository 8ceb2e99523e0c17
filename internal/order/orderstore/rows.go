package orderstore

import (
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

type orderRow struct {
	ID             string `gorm:"primaryKey"`
	Buyer          string
	IdempotencyKey string
	Status         string
	TotalMinor     int64
	Currency       string
	CreatedAt      store.Time
	ExpiresAt      store.Time
}

func (orderRow) TableName() string { return "orders" }

type lineRow struct {
	OrderID    string `gorm:"primaryKey"`
	SKU        string `gorm:"primaryKey"`
	LineNo     int
	Units      int64
	PriceMinor int64
	Currency   string
}

func (lineRow) TableName() string { return "order_lines" }

type keyRow struct {
	Buyer          string `gorm:"primaryKey"`
	IdempotencyKey string `gorm:"primaryKey"`
	Fingerprint    string
	OrderID        string
	CreatedAt      store.Time
}

func (keyRow) TableName() string { return "idempotency_keys" }

func rowOfOrder(o order.Order) orderRow {
	return orderRow{
		ID:             o.ID,
		Buyer:          o.Buyer,
		IdempotencyKey: o.Key,
		Status:         string(o.Status),
		TotalMinor:     o.Total.Minor,
		Currency:       o.Total.Currency,
		CreatedAt:      store.Time{Time: o.CreatedAt},
		ExpiresAt:      store.Time{Time: o.ExpiresAt},
	}
}

func rowOfKey(c order.Claim) keyRow {
	return keyRow{
		Buyer:          c.Order.Buyer,
		IdempotencyKey: c.Order.Key,
		Fingerprint:    c.Fingerprint,
		OrderID:        c.Order.ID,
		CreatedAt:      store.Time{Time: c.Order.CreatedAt},
	}
}

func rowsOfLines(o order.Order) []lineRow {
	rows := make([]lineRow, 0, len(o.Lines))
	for i, line := range o.Lines {
		rows = append(rows, lineRow{
			OrderID:    o.ID,
			SKU:        line.SKU,
			LineNo:     i + 1,
			Units:      line.Units,
			PriceMinor: line.Price.Minor,
			Currency:   line.Price.Currency,
		})
	}
	return rows
}

// order joins a row with its lines, which must be in the order of line_no.
func (r orderRow) order(lines []lineRow) order.Order {
	o := order.Order{
		ID:        r.ID,
		Buyer:     r.Buyer,
		Key:       r.IdempotencyKey,
		Status:    order.Status(r.Status),
		Lines:     make([]order.Line, 0, len(lines)),
		Total:     stock.Money{Minor: r.TotalMinor, Currency: r.Currency},
		CreatedAt: r.CreatedAt.Time,
		ExpiresAt: r.ExpiresAt.Time,
	}
	for _, line := range lines {
		o.Lines = append(o.Lines, order.Line{
			SKU:   line.SKU,
			Units: line.Units,
			Price: stock.Money{Minor: line.PriceMinor, Currency: line.Currency},
		})
	}
	return o
}

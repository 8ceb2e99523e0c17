package stockstore

import (
	"database/sql"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

type skuRow struct {
	Name       string `gorm:"primaryKey"`
	PriceMinor int64
	Currency   string
	Supplied   int64
	Available  int64
	Reserved   int64
	Sold       int64
	Fence      int64
	CreatedAt  store.Time

	LimitPerBuyer int64
}

func (skuRow) TableName() string { return "skus" }

func rowOfSKU(s stock.SKU) skuRow {
	return skuRow{
		Name:       s.Name,
		PriceMinor: s.Price.Minor,
		Currency:   s.Price.Currency,
		Supplied:   s.Level.Supplied,
		Available:  s.Level.Available,
		Reserved:   s.Level.Reserved,
		Sold:       s.Level.Sold,
		Fence:      s.Fence,
		CreatedAt:  store.Time{Time: s.CreatedAt},

		LimitPerBuyer: s.LimitPerBuyer,
	}
}

func (r skuRow) sku() stock.SKU {
	return stock.SKU{
		Name:  r.Name,
		Price: stock.Money{Minor: r.PriceMinor, Currency: r.Currency},
		Level: stock.Level{
			Supplied:  r.Supplied,
			Available: r.Available,
			Reserved:  r.Reserved,
			Sold:      r.Sold,
		},
		Fence:     r.Fence,
		CreatedAt: r.CreatedAt.Time,

		LimitPerBuyer: r.LimitPerBuyer,
	}
}

type movementRow struct {
	SKU       string `gorm:"primaryKey"`
	ID        string `gorm:"primaryKey"`
	Kind      string
	OrderID   sql.NullString
	Supplied  int64
	Available int64
	Reserved  int64
	Sold      int64
	Fence     int64
	CreatedAt store.Time
}

func (movementRow) TableName() string { return "movements" }

func rowOfMovement(m stock.Movement) movementRow {
	return movementRow{
		SKU:       m.SKU,
		ID:        m.ID,
		Kind:      string(m.Kind),
		OrderID:   sql.NullString{String: m.OrderID, Valid: m.OrderID != ""},
		Supplied:  m.Change.Supplied,
		Available: m.Change.Available,
		Reserved:  m.Change.Reserved,
		Sold:      m.Change.Sold,
		Fence:     m.Fence,
		CreatedAt: store.Time{Time: m.At},
	}
}

func (r movementRow) movement() stock.Movement {
	return stock.Movement{
		ID:      r.ID,
		SKU:     r.SKU,
		Kind:    stock.Kind(r.Kind),
		OrderID: r.OrderID.String,
		Change:  stock.Level{Supplied: r.Supplied, Available: r.Available, Reserved: r.Reserved, Sold: r.Sold},
		Fence:   r.Fence,
		At:      r.CreatedAt.Time,
	}
}

type deliveryRow struct {
	SKU            string `gorm:"primaryKey"`
	IdempotencyKey string `gorm:"primaryKey"`
	MovementID     string
	Units          int64
	Supplied       int64
	Available      int64
	Reserved       int64
	Sold           int64
}

func (deliveryRow) TableName() string { return "deliveries" }

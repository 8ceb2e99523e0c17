package orderstore

import (
	"fmt"
	"slices"

	"gorm.io/gorm/clause"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store"
)

type buyerRow struct {
	Buyer string `gorm:"primaryKey"`
}

func (buyerRow) TableName() string { return "buyers" }

// LockBuyers writes the buyers' rows, or writes them again as they are: either way
// they are locked, and the next order of one of the buyers waits here until this
// one has ended.
func (t *tx) LockBuyers(buyers ...string) error {
	rows := make([]buyerRow, len(buyers))
	for i, buyer := range slices.Sorted(slices.Values(buyers)) {
		rows[i].Buyer = buyer
	}
	return t.do(func() error {
		if err := t.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&rows).Error; err != nil {
			return fmt.Errorf("lock %d buyers: %w", len(rows), err)
		}
		return nil
	})
}

// Open counts buyers' pending orders.
//
// It may be a plain SELECT, and so may that of Bought. REPEATABLE READ answers both
// from the snapshot that the first of them takes, and by then LockBuyers and Take
// keep whoever could add to these numbers out. Locking reads would keep other
// buyers out, too: they lock the gaps between rows.
func (t *tx) Open(buyers ...string) (map[string]order.OpenOrders, error) {
	var counts []struct {
		Buyer  string
		Orders int
		First  store.Time
	}
	err := t.do(func() error {
		err := t.db.Model(&orderRow{}).Where("buyer IN ? AND status = ?", buyers, order.Pending).
			Select("buyer, COUNT(*) AS orders, MIN(expires_at) AS first").Group("buyer").Find(&counts).Error
		if err != nil {
			return fmt.Errorf("count open orders: %w", err)
		}
		return nil
	})
	open := map[string]order.OpenOrders{}
	for _, c := range counts {
		open[c.Buyer] = order.OpenOrders{Count: c.Orders, First: c.First.Time}
	}
	return open, err
}

// Bought adds up the units in buyers' orders that are pending or paid.
func (t *tx) Bought(buyers, skus []string) (map[order.BuyerSKU]int64, error) {
	var sums []struct {
		Buyer string
		SKU   string
		Units int64
	}
	err := t.do(func() error {
		err := t.db.Table("orders AS o").Joins("JOIN order_lines AS l ON l.order_id = o.id").
			Where("o.buyer IN ? AND o.status IN ? AND l.sku IN ?", buyers, []order.Status{order.Pending, order.Paid}, skus).
			Select("o.buyer, l.sku, SUM(l.units) AS units").Group("o.buyer, l.sku").Find(&sums).Error
		if err != nil {
			return fmt.Errorf("add up what was bought: %w", err)
		}
		return nil
	})
	bought := map[order.BuyerSKU]int64{}
	for _, sum := range sums {
		bought[order.BuyerSKU{Buyer: sum.Buyer, SKU: sum.SKU}] = sum.Units
	}
	return bought, err
}

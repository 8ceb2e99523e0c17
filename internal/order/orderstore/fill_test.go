package orderstore_test

import (
	"testing"

	"gorm.io/gorm"

	"example.com/shop/internal/order/orderstore/audittest"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// audittest: "The audit finds no difference."
func TestFill(t *testing.T) {
	t.Parallel()
	const orders = 1_234 // a transaction and a part of one
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		if err := audittest.Fill(t.Context(), db, orders); err != nil {
			t.Fatal(err)
		}
		s := newShop(t, db, 0)
		accounts, found := s.audit(t, "")
		if len(found) > 0 {
			t.Errorf("got %d differences, such as %v, want none", len(found), found[0])
		}
		var sum stock.Level
		for _, a := range accounts {
			sum.Available += a.Level.Available
			sum.Reserved += a.Level.Reserved
			sum.Sold += a.Level.Sold
		}
		if sum.Available == 0 || sum.Reserved == 0 || sum.Sold == 0 {
			t.Errorf("got %v in all, want some of each", sum)
		}
		s.wantRows(t, rows{Orders: orders, Lines: 1_603, Movements: 3_101, Keys: orders})
	})
}

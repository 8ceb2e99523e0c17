package order_test

import (
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// The audit of a live database sees one moment of it: while buyers of three
// instances buy, pay, cancel and let expire, it never finds a difference.
func TestAudit_live(t *testing.T) {
	t.Parallel()
	const buyers, orders = 6, 10
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		shops := threeShops(t, db)
		b := shops[0]
		b.supply(t, "mug", buyers*orders/2)
		done := make(chan struct{})
		go func() {
			defer close(done)
			atOnce(buyers, func(i int) {
				for n := range orders {
					b.buyAndEnd(t, shops[(i+n)%3], fmt.Sprintf("%d-%d", i, n), n)
				}
			})
		}()
		defer func() { <-done }() // also when an audit failed
		audits := 0
		for running := true; running; audits++ {
			select {
			case <-done:
				running = false
			default:
			}
			b.audit(t, "")
		}
		t.Logf("%d audits", audits)
	})
}

// buyAndEnd places an order at a shop and ends it in one of four ways.
func (b *bundle) buyAndEnd(t *testing.T, at *bundle, key string, way int) {
	t.Helper()
	o, _, err := at.Place(t.Context(), buy(key, "mug", 1))
	if errors.Is(err, stock.ErrSoldOut) {
		return
	}
	if err != nil {
		t.Errorf("place %s: %v", key, err)
		return
	}
	switch way % 4 {
	case 0: // it stays pending
	case 1:
		_, err = at.Pay(t.Context(), o.Buyer, o.ID)
	case 2:
		_, err = at.Cancel(t.Context(), o.Buyer, o.ID)
	case 3:
		b.expireIn(t, o, 0)
		_, err = at.ExpireDue(t.Context(), 1)
	}
	if err != nil && !errors.Is(err, order.ErrBusy) {
		t.Errorf("end %s: %v", key, err)
	}
}

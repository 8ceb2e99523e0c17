package orderstore_test

import (
	"testing"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// lifeTamperings is damage to how orders ended.
func lifeTamperings() []tampering {
	return []tampering{
		{
			name:   "paid order without its sale",
			damage: []string{"UPDATE orders SET status = 'paid' WHERE id = '{bob}'"},
			want: []stock.Difference{
				{Invariant: "I1", SKU: "mug", Detail: "reserved 4, but open orders hold 2 units"},
				{Invariant: "I1", SKU: "mug", Detail: "sold 0, but paid orders have 2 units"},
				{Invariant: "I5", SKU: "mug", OrderID: "{bob}", Detail: "order is paid, but no movement sells its 2 units"},
			},
		},
		{
			name:   "expired order without its credit",
			damage: []string{"UPDATE orders SET status = 'expired' WHERE id = '{bob}'"},
			want: []stock.Difference{
				{Invariant: "I1", SKU: "mug", Detail: "reserved 4, but open orders hold 2 units"},
				{Invariant: "I5", SKU: "mug", OrderID: "{bob}", Detail: "order is expired, but no movement gives its 2 units back"},
			},
		},
		{
			name: "credit of a pending order",
			damage: []string{
				"INSERT INTO movements VALUES ('mug', '{none}', 'release', '{bob}', 0, 2, -2, 0, 0, '2026-01-01 00:00:00.000000')",
				"UPDATE skus SET available = 8, reserved = 2 WHERE name = 'mug'",
			},
			want: []stock.Difference{
				{Invariant: "I1", SKU: "mug", Detail: "reserved 2, but open orders hold 4 units"},
				{Invariant: "I5", SKU: "mug", OrderID: "{bob}", Detail: "order is pending, but movement {none} gives units of it back"},
			},
		},
		{
			name: "sale of other units than the line",
			damage: []string{
				"UPDATE orders SET status = 'paid' WHERE id = '{bob}'",
				"INSERT INTO movements VALUES ('mug', '{none}', 'sell', '{bob}', 0, 0, -1, 1, 0, '2026-01-01 00:00:00.000000')",
				"UPDATE skus SET reserved = 3, sold = 1 WHERE name = 'mug'",
			},
			want: []stock.Difference{
				{Invariant: "I1", SKU: "mug", Detail: "reserved 3, but open orders hold 2 units"},
				{Invariant: "I1", SKU: "mug", Detail: "sold 1, but paid orders have 2 units"},
				{Invariant: "I5", SKU: "mug", OrderID: "{bob}", Detail: "line of 2 units, but movement {none} (sell) changes supplied by 0, available by 0, reserved by -1, sold by 1"},
			},
		},
		{
			name: "cancelled order that sold its units",
			damage: []string{
				"UPDATE orders SET status = 'cancelled' WHERE id = '{bob}'",
				"INSERT INTO movements VALUES ('mug', '{none}', 'sell', '{bob}', 0, 0, -2, 2, 0, '2026-01-01 00:00:00.000000')",
				"UPDATE skus SET reserved = 2, sold = 2 WHERE name = 'mug'",
			},
			want: []stock.Difference{
				{Invariant: "I1", SKU: "mug", Detail: "sold 2, but paid orders have 0 units"},
				{Invariant: "I5", SKU: "mug", OrderID: "{bob}", Detail: "order is cancelled, but no movement gives its 2 units back"},
				{Invariant: "I5", SKU: "mug", OrderID: "{bob}", Detail: "order is cancelled, but movement {none} sells units of it"},
			},
		},
		{
			name:   "state that no order can be in",
			damage: []string{"UPDATE orders SET status = 'lost' WHERE id = '{bob}'"},
			want: []stock.Difference{
				{Invariant: "I1", SKU: "mug", Detail: "reserved 4, but open orders hold 2 units"},
				{Invariant: "I5", OrderID: "{bob}", Detail: "order is lost, which no order can be"},
			},
		},
	}
}

// "Each once (the schema refuses a second movement of a kind)".
func TestSchema_settlesOnce(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := newShop(t, kind.New(t, "").Migrated(t), 10, "mug")
		o := draft("ann", "k1", "mug")
		s.mustPlace(t, o, draft("bob", "k1", "mug"))
		credit := func() error {
			return s.orders.InTx(t.Context(), func(tx order.Tx) error {
				if err := tx.Settle(stock.Release, "mug", 2); err != nil {
					return err
				}
				return tx.Record(stock.Movement{
					ID: newID(), SKU: "mug", Kind: stock.Release, OrderID: o.ID, Change: stock.Settle(stock.Release, 2), At: placedAt,
				})
			})
		}
		if _, _, err := moveAlone(t, s, o, order.Cancelled); err != nil {
			t.Fatal(err)
		}
		if err := credit(); err != nil {
			t.Fatal(err)
		}
		if err := credit(); err == nil {
			t.Error("an order gave its units back twice")
		}
		if _, found := s.audit(t, ""); len(found) > 0 {
			t.Errorf("audit: got %v, want no difference", found)
		}
	})
}

func moveAlone(t *testing.T, s shop, o order.Order, to order.Status) (now order.Status, moved bool, err error) {
	t.Helper()
	err = s.orders.InTx(t.Context(), func(tx order.Tx) (err error) {
		now, moved, err = tx.Move(o.ID, to)
		return err
	})
	return now, moved, err
}

package orderstore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// tampering is damage to a sound database, and what the audit has to say of it.
// In both, {ann} and {bob} stand for the ids of their orders, {move} for that
// of bob's movement, {none} for an id of nothing.
type tampering struct {
	name   string
	damage []string
	want   []stock.Difference
}

func tamperings() []tampering {
	return []tampering{
		{
			name:   "level does not balance",
			damage: []string{"UPDATE skus SET sold = 1 WHERE name = 'mug'"},
			want: []stock.Difference{
				{Invariant: "I1", SKU: "mug", Detail: "supplied 10 is not available 6 + reserved 4 + sold 1, none negative"},
				{Invariant: "I1", SKU: "mug", Detail: "sold 1, but paid orders have 0 units"},
				{Invariant: "I5", SKU: "mug", Detail: "level says supplied 10, available 6, reserved 4, sold 1; the ledger adds up to supplied 10, available 6, reserved 4, sold 0"},
			},
		},
		{
			name:   "units came from nowhere",
			damage: []string{"UPDATE skus SET supplied = 11, available = 7 WHERE name = 'mug'"},
			want: []stock.Difference{
				{Invariant: "I5", SKU: "mug", Detail: "level says supplied 11, available 7, reserved 4, sold 0; the ledger adds up to supplied 10, available 6, reserved 4, sold 0"},
			},
		},
		{
			name: "order without its units",
			damage: []string{
				"UPDATE skus SET available = 8, reserved = 2 WHERE name = 'mug'",
				"UPDATE movements SET available = 0, reserved = 0 WHERE id = '{move}'",
			},
			want: []stock.Difference{
				{Invariant: "I1", SKU: "mug", Detail: "reserved 2, but open orders hold 4 units"},
				{Invariant: "I5", SKU: "mug", OrderID: "{bob}", Detail: "line of 2 units, but movement {move} changes supplied by 0, available by 0, reserved by 0, sold by 0"},
			},
		},
		{
			name: "oversold",
			damage: []string{
				"UPDATE skus SET supplied = 3, available = 0, reserved = 3 WHERE name = 'mug'",
				"UPDATE movements SET supplied = 3, available = 3 WHERE kind = 'supply' AND sku = 'mug'",
			},
			want: []stock.Difference{
				{Invariant: "I1", SKU: "mug", Detail: "oversold by 1: orders hold 4 units of 3 supplied"},
				{Invariant: "I1", SKU: "mug", Detail: "reserved 3, but open orders hold 4 units"},
				{Invariant: "I5", SKU: "mug", Detail: "level says supplied 3, available 0, reserved 3, sold 0; the ledger adds up to supplied 3, available -1, reserved 4, sold 0"},
			},
		},
		{
			name:   "order without its key",
			damage: []string{"DELETE FROM idempotency_keys WHERE buyer = 'bob'"},
			want: []stock.Difference{
				{Invariant: "I2", OrderID: "{bob}", Detail: "idempotency key k1 of buyer bob is not on record"},
			},
		},
		{
			name: "two orders with one key",
			damage: []string{
				"UPDATE orders SET buyer = 'ann' WHERE id = '{bob}'",
				"DELETE FROM idempotency_keys WHERE buyer = 'bob'",
			},
			want: []stock.Difference{
				{Invariant: "I2", OrderID: "{bob}", Detail: "idempotency key k1 of buyer ann belongs to order {ann}"},
			},
		},
		{
			name:   "key of no order",
			damage: []string{"INSERT INTO idempotency_keys VALUES ('cat', 'k9', 'f', '{none}', '2026-01-01 00:00:00.000000')"},
			want: []stock.Difference{
				{Invariant: "I2", OrderID: "{none}", Detail: "idempotency key k9 of buyer cat names an order that does not exist"},
			},
		},
		{
			name:   "second key of an order",
			damage: []string{"INSERT INTO idempotency_keys VALUES ('cat', 'k9', 'f', '{bob}', '2026-01-01 00:00:00.000000')"},
			want: []stock.Difference{
				{Invariant: "I2", OrderID: "{bob}", Detail: "idempotency key k9 of buyer cat names an order placed with key k1 of buyer bob"},
			},
		},
		{
			name:   "key that pays an unpaid order",
			damage: []string{"INSERT INTO idempotency_keys VALUES ('bob', 'k9', 'pay:{bob}', '{bob}', '2026-01-01 00:00:00.000000')"},
			want: []stock.Difference{
				{Invariant: "I2", OrderID: "{bob}", Detail: "idempotency key k9 of buyer bob is of the request pay:{bob}, but the order is pending"},
			},
		},
		{
			name:   "key that cancels another order",
			damage: []string{"INSERT INTO idempotency_keys VALUES ('bob', 'k9', 'cancel:{ann}', '{bob}', '2026-01-01 00:00:00.000000')"},
			want: []stock.Difference{
				{Invariant: "I2", OrderID: "{bob}", Detail: "idempotency key k9 of buyer bob names an order placed with key k1 of buyer bob"},
				{Invariant: "I2", OrderID: "{bob}", Detail: "idempotency key k9 of buyer bob is of the request cancel:{ann}, but the order is pending"},
			},
		},
		{
			name: "order without lines",
			damage: []string{
				"INSERT INTO orders (id, buyer, idempotency_key, status, total_minor, currency, created_at) VALUES ('{none}', 'cat', 'k9', 'pending', 0, 'EUR', '2026-01-01 00:00:00.000000')",
				"INSERT INTO idempotency_keys VALUES ('cat', 'k9', 'f', '{none}', '2026-01-01 00:00:00.000000')",
			},
			want: []stock.Difference{
				{Invariant: "I5", OrderID: "{none}", Detail: "order has no lines"},
			},
		},
		{
			name: "lines of no order",
			damage: []string{
				"DELETE FROM orders WHERE id = '{bob}'",
				"DELETE FROM idempotency_keys WHERE buyer = 'bob'",
			},
			want: []stock.Difference{
				{Invariant: "I1", SKU: "mug", Detail: "reserved 4, but open orders hold 2 units"},
				{Invariant: "I5", SKU: "mug", OrderID: "{bob}", Detail: "line of 2 units of an order that does not exist"},
			},
		},
		{
			name:   "lines and movements of no SKU",
			damage: []string{"DELETE FROM skus WHERE name = 'hat'", "DELETE FROM movements WHERE sku = 'hat' AND kind = 'supply'"},
			want: []stock.Difference{
				{Invariant: "I5", SKU: "hat", OrderID: "{ann}", Detail: "line of 2 units of a SKU that does not exist"},
				{Invariant: "I5", SKU: "hat", OrderID: "{ann}", Detail: "movement {move-hat} (reserve) is of a SKU that does not exist"},
			},
		},
		{
			name:   "line without its movement",
			damage: []string{"DELETE FROM movements WHERE id = '{move}'"},
			want: []stock.Difference{
				{Invariant: "I5", SKU: "mug", Detail: "level says supplied 10, available 6, reserved 4, sold 0; the ledger adds up to supplied 10, available 8, reserved 2, sold 0"},
				{Invariant: "I5", SKU: "mug", OrderID: "{bob}", Detail: "line of 2 units has no movement that reserves them"},
			},
		},
		{
			name:   "movement of other units than the line",
			damage: []string{"UPDATE order_lines SET units = 3 WHERE order_id = '{bob}'"},
			want: []stock.Difference{
				{Invariant: "I1", SKU: "mug", Detail: "reserved 4, but open orders hold 5 units"},
				{Invariant: "I5", SKU: "mug", OrderID: "{bob}", Detail: "line of 3 units, but movement {move} changes supplied by 0, available by -2, reserved by 2, sold by 0"},
			},
		},
		{
			name:   "movement of no order",
			damage: []string{"INSERT INTO movements VALUES ('mug', '{none}', 'reserve', '{none}', 0, 0, 0, 0, 0, '2026-01-01 00:00:00.000000')"},
			want: []stock.Difference{
				{Invariant: "I5", SKU: "mug", OrderID: "{none}", Detail: "movement {none} (reserve) is of an order that has no line of this SKU"},
			},
		},
		{
			name:   "movement of an order with another SKU",
			damage: []string{"INSERT INTO movements VALUES ('hat', '{none}', 'reserve', '{bob}', 0, 0, 0, 0, 0, '2026-01-01 00:00:00.000000')"},
			want: []stock.Difference{
				{Invariant: "I5", SKU: "hat", OrderID: "{bob}", Detail: "movement {none} (reserve) is of an order that has no line of this SKU"},
			},
		},
		{
			name:   "reservation that names no order",
			damage: []string{"INSERT INTO movements VALUES ('mug', '{none}', 'reserve', NULL, 0, 0, 0, 0, 0, '2026-01-01 00:00:00.000000')"},
			want: []stock.Difference{
				{Invariant: "I5", SKU: "mug", Detail: "movement {none} (reserve) is of no order"},
			},
		},
		{
			name:   "supply that names an order",
			damage: []string{"INSERT INTO movements VALUES ('mug', '{none}', 'supply', '{bob}', 0, 0, 0, 0, 0, '2026-01-01 00:00:00.000000')"},
			want: []stock.Difference{
				{Invariant: "I5", SKU: "mug", OrderID: "{bob}", Detail: "supply {none} changes supplied by 0, available by 0, reserved by 0, sold by 0"},
			},
		},
		{
			name: "supply that is reserved at once",
			damage: []string{
				"INSERT INTO movements VALUES ('mug', '{none}', 'supply', NULL, 1, 0, 1, 0, 0, '2026-01-01 00:00:00.000000')",
				"UPDATE skus SET supplied = 11, reserved = 5 WHERE name = 'mug'",
			},
			want: []stock.Difference{
				{Invariant: "I1", SKU: "mug", Detail: "reserved 5, but open orders hold 4 units"},
				{Invariant: "I5", SKU: "mug", Detail: "supply {none} changes supplied by 1, available by 0, reserved by 1, sold by 0"},
			},
		},
		{
			name:   "movement of a SKU that never was",
			damage: []string{"INSERT INTO movements VALUES ('cap', '{none}', 'supply', NULL, 1, 1, 0, 0, 0, '2026-01-01 00:00:00.000000')"},
			want: []stock.Difference{
				{Invariant: "I5", SKU: "cap", Detail: "movement {none} (supply) is of a SKU that does not exist"},
			},
		},
	}
}

// The audit reports every broken invariant, and nothing else.
func TestStore_Audit_seesEachDifference(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		for _, c := range slices.Concat(tamperings(), fenceTamperings(), lifeTamperings()) {
			t.Run(c.name, func(t *testing.T) {
				s := newShop(t, kind.New(t, "").Migrated(t), 10, "mug", "hat")
				ann, bob := draft("ann", "k1", "mug", "hat"), draft("bob", "k1", "mug")
				s.mustPlace(t, ann, bob)
				fill := strings.NewReplacer("{ann}", ann.ID, "{bob}", bob.ID, "{none}", newID(),
					"{move}", s.movementOf(t, bob, "mug"), "{move-hat}", s.movementOf(t, ann, "hat"))
				for i := range c.damage {
					tamper(t, s, fill.Replace(c.damage[i]))
				}
				for i := range c.want {
					c.want[i].OrderID = fill.Replace(c.want[i].OrderID)
					c.want[i].Detail = fill.Replace(c.want[i].Detail)
				}
				_, found := s.audit(t, "")
				if diff := cmp.Diff(c.want, found); diff != "" {
					t.Errorf("all SKUs (-want +got):\n%s", diff)
				}
				s.wantInAuditOfOne(t, c)
			})
		}
	})
}

// wantInAuditOfOne checks the audits of single SKUs: each difference that has a
// SKU is in its audit, and none in that of the other one.
func (s shop) wantInAuditOfOne(t *testing.T, c tampering) {
	t.Helper()
	for _, sku := range []string{"hat", "mug"} {
		if sku == "hat" && c.name == "lines and movements of no SKU" {
			continue // there is no such SKU to audit
		}
		var want, got []stock.Difference
		for _, d := range c.want {
			if d.SKU == sku {
				want = append(want, d)
			}
		}
		_, found := s.audit(t, sku)
		for _, d := range found {
			if d.SKU != "" { // an order is told of by all its SKUs
				got = append(got, d)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("SKU %s (-want +got):\n%s", sku, diff)
		}
	}
}

func (s shop) movementOf(t *testing.T, o order.Order, sku string) (id string) {
	t.Helper()
	err := s.db.Raw("SELECT id FROM movements WHERE order_id = ? AND sku = ?", o.ID, sku).Row().Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// "An order reserves its units once": the schema itself refuses a second row.
func TestSchema_movesOnce(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := newShop(t, kind.New(t, "").Migrated(t), 10, "mug")
		o := draft("ann", "k1", "mug")
		s.mustPlace(t, o)
		err := s.orders.InTx(t.Context(), func(tx order.Tx) error { return tx.Record(reservation(o, o.Lines[0])) })
		if err == nil {
			t.Error("a second reservation of a line was recorded")
		}
		s.wantRows(t, rows{Orders: 1, Lines: 1, Movements: 2, Keys: 1})
	})
}

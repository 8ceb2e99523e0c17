package store_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// tampering is damage to a sound database, and what the audit has to say of it.
type tampering struct {
	name   string
	damage []string
	want   []stock.Difference
}

// readTamperings reads testdata/tamperings.txt, with its placeholders.
func readTamperings(t *testing.T) (all []tampering) {
	t.Helper()
	text, err := os.ReadFile("testdata/tamperings.txt")
	if err != nil {
		t.Fatal(err)
	}
	difference := regexp.MustCompile(`^(I\d) (\S+) (\S+): (.*)$`)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if name, begins := strings.CutPrefix(line, "== "); begins {
			all = append(all, tampering{name: name})
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		c := &all[len(all)-1]
		if m := difference.FindStringSubmatch(line); m != nil {
			c.want = append(c.want, stock.Difference{
				Invariant: stock.Invariant(m[1]), SKU: strings.Trim(m[2], "-"), OrderID: strings.Trim(m[3], "-"), Detail: m[4],
			})
		} else {
			c.damage = append(c.damage, line)
		}
	}
	return all
}

// The audit reports every broken invariant, and nothing else.
func TestStore_Audit_seesEachDifference(t *testing.T) {
	t.Parallel()
	tamperings := readTamperings(t)
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		for _, c := range tamperings {
			storetest.Exec(t, st, "DELETE FROM skus", "DELETE FROM orders", "DELETE FROM order_lines", "DELETE FROM movements",
				"DELETE FROM idempotency_keys", "DELETE FROM deliveries", "DELETE FROM buyer_units", "DELETE FROM payments")
			s := newShop(t, st, 10, "mug", "hat")
			if _, _, err := s.Supply(t.Context(), delivery("hat", "d1", 5)); err != nil {
				t.Fatal(err)
			}
			ann, bob := draft("ann", "k1", "mug", "hat"), draft("bob", "k1", "mug")
			s.mustPlace(t, ann, bob)
			fill := strings.NewReplacer("{ann}", ann.ID, "{bob}", bob.ID, "{none}", order.NewID(), "{then}", "'2026-01-01 00:00:00.000000'",
				"{move}", s.movementOf(t, bob, "mug"), "{move-hat}", s.movementOf(t, ann, "hat"))
			for _, statement := range c.damage {
				storetest.Exec(t, st, fill.Replace(statement))
			}
			var want []stock.Difference
			for _, d := range c.want {
				d.OrderID, d.Detail = fill.Replace(d.OrderID), fill.Replace(d.Detail)
				want = append(want, d)
			}
			_, found := s.audit(t, "")
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.name, diff)
			}
			s.wantInAuditOfOne(t, c.name, want)
		}
	})
}

// wantInAuditOfOne checks the audits of single SKUs: each difference that has a SKU is in its audit, and none in that
// of the other one.
func (s shop) wantInAuditOfOne(t *testing.T, name string, all []stock.Difference) {
	t.Helper()
	for _, sku := range []string{"hat", "mug"} {
		if sku == "hat" && name == "lines and movements of no SKU" {
			continue // there is no such SKU to audit
		}
		var want, got []stock.Difference
		for _, d := range all {
			if d.SKU == sku {
				want = append(want, d)
			}
		}
		_, found := s.audit(t, sku)
		for _, d := range found {
			if d.SKU != "" { // an order is in the audits of all its SKUs
				got = append(got, d)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: SKU %s (-want +got):\n%s", name, sku, diff)
		}
	}
}

func (s shop) movementOf(t *testing.T, d *order.Draft, sku string) (id string) {
	t.Helper()
	err := s.DB().QueryRowContext(t.Context(), "SELECT id FROM movements WHERE order_id = ? AND sku = ?", d.ID, sku).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

package store_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
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
	testserver.Must(t, err)
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

// The audit reports every broken invariant, and nothing else. Each difference that has a SKU is in the audit of this
// SKU, and none is in the audit of the other SKU.
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
			movement := func(d *order.Draft, sku string) string {
				return texts(t, st, "SELECT id FROM movements WHERE order_id = ? AND sku = ?", d.ID, sku)[0]
			}
			fill := strings.NewReplacer("{ann}", ann.ID, "{bob}", bob.ID, "{none}", order.NewID(), "{then}", "'2026-01-01 00:00:00.000000'",
				"{move}", movement(bob, "mug"), "{move-hat}", movement(ann, "hat"))
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
			for _, sku := range []string{"hat", "mug"} {
				if sku == "hat" && c.name == "lines and movements of no SKU" {
					continue // there is no such SKU to audit
				}
				ofSKU := slices.DeleteFunc(slices.Clone(want), func(d stock.Difference) bool { return d.SKU != sku })
				_, found := s.audit(t, sku)
				found = slices.DeleteFunc(found, func(d stock.Difference) bool { return d.SKU == "" }) // an order is in the audits of all its SKUs
				if diff := cmp.Diff(ofSKU, found, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s: SKU %s (-want +got):\n%s", c.name, sku, diff)
				}
			}
		}
	})
}

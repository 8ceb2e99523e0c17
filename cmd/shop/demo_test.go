package main

import (
	"net/http"
	"strings"
	"testing"

	"example.com/shop/internal/app"
)

// "A new SQLite file gets three demo SKUs to sell, unless it has others".
func TestServe_demoSKUs(t *testing.T) {
	t.Parallel()
	seeded := t.TempDir()
	shop(t, "seed", "--data", seeded, "--sku", "gone", "--units", "0", "--sku", "lamp", "--units", "3").want(t, app.ExitDone)
	soldOut := t.TempDir()
	shop(t, "seed", "--data", soldOut, "--sku", "gone", "--units", "0").want(t, app.ExitDone)
	for name, c := range map[string]struct {
		data, skus string
	}{
		"empty":    {t.TempDir(), "demo-mug demo-print demo-shirt"},
		"seeded":   {seeded, "gone lamp"},
		"sold out": {soldOut, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startShop(t, "--data", c.data)
			got := send(http.MethodGet, s.url+"/v1/skus", "")
			got.Want(t, http.StatusOK)
			var list struct {
				SKUs []struct{ SKU string } `json:"skus"`
			}
			got.Decode(t, &list)
			var names []string
			for _, sku := range list.SKUs {
				names = append(names, sku.SKU)
			}
			if names := strings.Join(names, " "); names != c.skus {
				t.Errorf("got SKUs %s, want %s", names, c.skus)
			}
		})
	}
}

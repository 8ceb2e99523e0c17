package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// "A new SQLite file gets three demo SKUs to sell, unless it has others": and then the
// lines to paste buy one of those.
func TestServe_demoSKUs(t *testing.T) {
	t.Parallel()
	seeded := t.TempDir()
	shop(t, "seed", "--data", seeded, "--sku", "gone", "--units", "0", "--sku", "lamp", "--units", "3").want(t, exitDone)
	soldOut := t.TempDir()
	shop(t, "seed", "--data", soldOut, "--sku", "gone", "--units", "0").want(t, exitDone)
	for name, c := range map[string]struct {
		data, skus, sample string
	}{
		"empty":    {t.TempDir(), "demo-mug demo-print demo-shirt", "demo-mug"},
		"seeded":   {seeded, "gone lamp", "lamp"},
		"sold out": {soldOut, "gone", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startShop(t, "--data", c.data)
			got := send(http.MethodGet, s.url+"/v1/skus", "")
			got.want(t, http.StatusOK)
			var list struct {
				SKUs []struct{ SKU string } `json:"skus"`
			}
			if err := json.Unmarshal([]byte(got.body), &list); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, sku := range list.SKUs {
				names = append(names, sku.SKU)
			}
			if names := strings.Join(names, " "); names != c.skus {
				t.Errorf("got SKUs %s, want %s", names, c.skus)
			}
			sample := ""
			if strings.Contains(s.stdout, `"lines":`) {
				sample = textBetween(t, s.stdout, `{"lines":[{"sku":"`, `","quantity":1}]}`)
			}
			if sample != c.sample {
				t.Errorf("got lines that buy %q, want %q", sample, c.sample)
			}
		})
	}
}

package main

import (
	"net/http"
	"strings"
	"testing"

	"example.com/shop/internal/app"
)

// "If the file has no SKU yet (see shop seed), the shop creates three demo SKUs."
func TestServe_demoSKUs(t *testing.T) {
	t.Parallel()
	soldOut := t.TempDir()
	shop(t, "seed", "--data", soldOut, "--sku", "gone", "--units", "0").want(t, app.ExitDone)
	for data, want := range map[string]string{t.TempDir(): " demo-mug demo-print demo-shirt", soldOut: " gone"} {
		s := startShop(t, "--data", data)
		var list struct{ SKUs []struct{ SKU string } }
		send(http.MethodGet, s.url+"/v1/skus", "").Want(t, http.StatusOK).Decode(t, &list)
		var names strings.Builder
		for _, sku := range list.SKUs {
			names.WriteString(" " + sku.SKU)
		}
		if names.String() != want {
			t.Errorf("got SKUs%s, want%s", &names, want)
		}
	}
}

package orderhttp_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
)

type skuPage struct {
	SKUs []struct {
		SKU       string `json:"sku"`
		Price     money  `json:"price"`
		Supplied  int64  `json:"supplied"`
		Available int64  `json:"available"`
		Reserved  int64  `json:"reserved"`
		Sold      int64  `json:"sold"`
	} `json:"skus"`
	NextCursor string `json:"next_cursor"`
}

func TestListSKUs_pages(t *testing.T) {
	b := setup(t, nil)
	var want []string
	for i := range 53 {
		name := fmt.Sprintf("sku-%02d", i)
		b.supply(t, name, 1)
		want = append(want, name)
	}
	for _, limit := range []string{"", "1", "7", "52", "53", "54", "100"} {
		t.Run("limit "+limit, func(t *testing.T) {
			var got []string
			cursor := ""
			for range len(want) + 1 {
				w := b.call(t, http.MethodGet, "/v1/skus?limit="+limit+"&cursor="+cursor, "")
				wantStatus(t, w, http.StatusOK)
				var page skuPage
				unmarshal(t, w, &page)
				for _, sku := range page.SKUs {
					got = append(got, sku.SKU)
				}
				if cursor = page.NextCursor; cursor == "" {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestListSKUs_none(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	w := b.call(t, http.MethodGet, "/v1/skus", "")
	wantStatus(t, w, http.StatusOK)
	if got, want := w.Body.String(), "{\"skus\":[]}\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestGetSKU_levels(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 5)
	wantStatus(t, b.buy(t, "key-1", line("2")), http.StatusCreated)
	w := b.call(t, http.MethodGet, "/v1/skus/mug", "")
	wantStatus(t, w, http.StatusOK)
	want := `{"sku":"mug","price":{"minor":1250,"currency":"EUR"},"supplied":5,"available":3,"reserved":2,"sold":0}` + "\n"
	if got := w.Body.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	head := b.call(t, http.MethodHead, "/v1/skus/mug", "")
	wantStatus(t, head, http.StatusOK)
}

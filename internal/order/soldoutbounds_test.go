package order_test

import (
	"errors"
	"fmt"
	"testing"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// BenchmarkSoldOut is what a refusal by what is remembered costs, with as many keys
// to look through as are kept of a SKU.
func BenchmarkSoldOut(b *testing.B) {
	s := order.Remembering(b, "mug", order.SoldOutKeys)
	r := buyAs("ann", "key", 1)
	for i := 0; b.Loop(); i++ {
		r.Key = fmt.Sprint(i)
		if _, _, err := s.Place(b.Context(), r); !errors.Is(err, stock.ErrSoldOut) {
			b.Fatal(err)
		}
	}
}

// "Bounds of what an instance remembers": SKUs, and keys of all of them.
func TestSoldOut_bounds(t *testing.T) {
	t.Parallel()
	s := order.Remembering(t, "mug", 1)
	for i := range 3000 {
		s.Remember(fmt.Sprint("sku-", i), 1)
	}
	if skus, keys := s.RememberedSKUs(), s.RememberedKeys(); skus != 1024 || keys != 1024 {
		t.Errorf("%d SKUs with %d keys, want 1024 of each", skus, keys)
	}
	for i := range 30 {
		s.Remember(fmt.Sprint("big-", i), order.SoldOutKeys)
		if last := buy("key", fmt.Sprint("big-", i), 1); !s.SoldOut(last) {
			t.Errorf("%s is not remembered, want the latest to be", last.Lines[0].SKU)
		}
	}
	if keys := s.RememberedKeys(); keys > 1_000_000 {
		t.Errorf("%d keys, want a million at most", keys)
	}
}

package order

import (
	"fmt"
	"testing"
	"time"

	"example.com/shop/internal/stock"
)

// "For so many SKUs; the others look."
func TestRecent_bound(t *testing.T) {
	t.Parallel()
	r := newRecent(time.Now)
	for i := range recentSKUs + 3 {
		name := fmt.Sprint(i)
		for range 2 { // again is no other one
			r.saw(sight{stock.SKU{Name: name}, time.Now()})
		}
		if _, _, ok := r.of(name); !ok || len(r.sights) != min(i+1, recentSKUs) {
			t.Fatalf("%d: %v, %d are kept, want it among %d", i, ok, len(r.sights), min(i+1, recentSKUs))
		}
	}
}

package order_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// A Trace has the steps of a request in order, with the units that were read and,
// where the strategy reckons, written.
func TestTrace(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		tests := []struct {
			strategy string
			units    int64
			want     []string
			err      error
		}{
			{"none", 2, []string{"begun", "read mug 5", "writing", "written mug 3", "committed"}, nil},
			{"mutex", 2, []string{"begun", "lock-asked", "lock-held", "read mug 5", "writing", "written mug 3", "committed", "released"}, nil},
			{"redis", 2, []string{"begun", "lock-asked", "lock-held", "read mug 5", "writing", "written mug", "committed", "released"}, nil},
			{"conditional", 2, []string{"begun", "read mug 5", "writing", "written mug", "committed"}, nil},
			{"redis", 6, []string{"begun", "lock-asked", "lock-held", "read mug 5", "released"}, stock.ErrSoldOut},
			{"conditional", 6, []string{"begun", "read mug 5", "writing"}, stock.ErrSoldOut},
		}
		for i, tt := range tests {
			t.Run(fmt.Sprintf("%s, %d units", tt.strategy, tt.units), func(t *testing.T) {
				sku := fmt.Sprintf("mug-%d", i)
				b.supply(t, sku, 5)
				r := buy(sku, sku, tt.units)
				r.Strategy = tt.strategy
				ctx, trace := order.WithTrace(t.Context())
				if _, _, err := b.Place(ctx, r); !errors.Is(err, tt.err) {
					t.Fatalf("Place: got %v, want %v", err, tt.err)
				}
				var got []string
				var last time.Time
				for _, step := range trace.Steps() {
					text := step.Name
					if step.SKU == sku {
						text += " mug"
					}
					if step.Known {
						text += fmt.Sprint(" ", step.Units)
					}
					got = append(got, text)
					if step.At.Before(last) {
						t.Errorf("%s at %v, before the step before it", step.Name, step.At)
					}
					last = step.At
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
			})
		}
	})
}

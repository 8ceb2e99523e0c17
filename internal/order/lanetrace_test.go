package order_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/store/storetest"
)

// In a lane "each gets its own steps, and no others": who is sold something has
// all of them, who is sold out or had its order before ends with what was read,
// and who goes on alone has those of both ways.
func TestLanes_trace(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 5)
		b.place(t, "first", "mug", 1) // by ann
		l := stand(t, b)
		var traced []*order.Trace
		join := func(ctx context.Context, r order.Request) {
			ctx, trace := order.WithTrace(ctx)
			traced = append(traced, trace)
			l.join(ctx, t, r)
		}
		gone, leave := context.WithCancel(t.Context())
		join(gone, buyAs("gus", "key", 1))
		join(t.Context(), buyAs("bob", "key", 3))
		l.join(t.Context(), t, buyAs("zoe", "key", 1)) // nobody wants to know
		join(t.Context(), buyAs("max", "key", 1))
		join(t.Context(), buyAs("ann", "first", 1))
		leave()
		awaitQueued(t, l.shop, 4)
		l.serve(t)

		asked := []string{"begun", "lock-asked"}
		read := slices.Concat(asked, []string{"lock-held", "read 4"})
		sold := slices.Concat(read, []string{"writing", "written", "committed"})
		for i, want := range [][]string{asked, sold, read, read} {
			var got []string
			for _, step := range traced[i].Steps() {
				text := step.Name
				if step.Known {
					text += " 4"
				}
				if step.Known && step.Units != 4 {
					t.Errorf("%d: read %d units, want 4", i, step.Units)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d (-want +got):\n%s", i, diff)
			}
		}
	})
}

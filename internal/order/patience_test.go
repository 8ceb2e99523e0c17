package order

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// "patience bounds a batch by the last deadline of its buyers", whoever of them is
// cancelled, and by batchBound if one of them has none.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		within := func(d time.Duration) *wish {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return &wish{ctx: ctx}
		}
		cancelled, cancel := context.WithTimeout(t.Context(), time.Second)
		cancel()
		for _, c := range []struct {
			batch []*wish
			want  time.Duration
		}{
			{[]*wish{within(time.Second)}, time.Second},
			{[]*wish{within(time.Second), within(time.Minute), within(2 * time.Second)}, time.Minute},
			{[]*wish{within(time.Second), {ctx: t.Context()}}, batchBound},
			{[]*wish{{ctx: cancelled}}, time.Second},
		} {
			ctx, cancel := patience(t.Context(), c.batch)
			if ends, _ := ctx.Deadline(); time.Until(ends) != c.want || ctx.Err() != nil {
				t.Errorf("%d buyers: ends in %v, %v, want %v", len(c.batch), time.Until(ends), ctx.Err(), c.want)
			}
			cancel()
		}
	})
}

package measure

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchdog(t *testing.T) {
	dog := Watchdog{Patience: 10 * time.Second, Grace: time.Second}
	var never chan struct{} // each case makes its own
	for _, c := range []struct {
		name string
		work func(ctx context.Context, alive func())
		want []error
		not  []error
		took time.Duration
	}{
		{
			name: "work that ends", took: time.Second,
			work: func(context.Context, func()) { time.Sleep(time.Second) },
			not:  []error{ErrHung, ErrStuck},
		},
		{
			name: "slow, but alive", took: 36 * time.Second,
			work: func(_ context.Context, alive func()) {
				for range 4 {
					time.Sleep(9 * time.Second)
					alive()
				}
			},
			not: []error{ErrHung, ErrStuck},
		},
		{
			name: "hangs until it is cancelled", took: 10 * time.Second,
			work: func(ctx context.Context, _ func()) { <-ctx.Done() },
			want: []error{ErrHung}, not: []error{ErrStuck},
		},
		{
			name: "hangs for ever", took: 11 * time.Second,
			work: func(context.Context, func()) { <-never },
			want: []error{ErrHung, ErrStuck},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				never = make(chan struct{})
				began := time.Now()
				err := dog.Watch(t.Context(), c.work)
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				close(never)
				for _, want := range c.want {
					if !errors.Is(err, want) {
						t.Errorf("got %v, want %v", err, want)
					}
				}
				for _, not := range c.not {
					if errors.Is(err, not) {
						t.Errorf("got %v, want no %v", err, not)
					}
				}
			})
		})
	}
}

func TestWatchdog_cancelledRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		dog := Watchdog{Patience: time.Minute, Grace: time.Minute}
		err := dog.Watch(ctx, func(ctx context.Context, _ func()) { <-ctx.Done() })
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrHung) {
			t.Errorf("got %v, want the end of the context", err)
		}
	})
}

package order

import (
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/lock"
)

// "ErrTooLate if less than margin is left of any lease."
func TestLeases_check(t *testing.T) {
	t.Parallel()
	held := leases{}
	for sku, ttl := range map[string]time.Duration{"short": 10 * time.Second, "long": time.Hour} {
		locker := lock.New(lock.NewMemory(), lock.Options{TTL: ttl})
		t.Cleanup(func() { _ = locker.Close() })
		lease, err := locker.Acquire(t.Context(), sku)
		if err != nil {
			t.Fatal(err)
		}
		held[sku] = lease
	}
	if err := held.check(time.Second); err != nil {
		t.Errorf("enough is left: %v", err)
	}
	if err := held.check(time.Minute); !errors.Is(err, ErrTooLate) || !strings.Contains(err.Error(), "short") {
		t.Errorf("got %v, want an ErrTooLate that names the short one", err)
	}
	if err := leases(nil).check(time.Hour); err != nil {
		t.Errorf("no lease: %v", err)
	}
}

package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"example.com/shop/internal/lock"
)

// "One who waits is woken by the release", also when those who came later, and
// left, have shorter TTLs.
func TestRedis_LineOfDifferentTTLs(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t) // its clock stands still
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const short, long = 2 * time.Second, time.Minute
	process := func(owner string, ttl time.Duration) (*lock.Redis, lock.Claim) {
		b := lock.NewRedis(connect(t, server.Addr()))
		t.Cleanup(func() { _ = b.Close() })
		return b, lock.Claim{Key: "key", Owner: owner, TTL: ttl, Queue: true}
	}
	ask := func(b *lock.Redis, c lock.Claim, held bool) lock.Grant {
		t.Helper()
		g, err := b.Acquire(ctx, c)
		if err != nil || g.Held != held {
			t.Fatalf("Acquire by %s: %+v, %v; want held by another: %t", c.Owner, g, err, held)
		}
		return g
	}
	release := func(b *lock.Redis, c lock.Claim) {
		t.Helper()
		if err := b.Release(ctx, c); err != nil {
			t.Fatalf("Release by %s: %v", c.Owner, err)
		}
	}

	first, firstClaim := process("first", long)
	second, secondClaim := process("second", short)
	third, thirdClaim := process("third", long)
	passer, passerClaim := process("passer", short)
	ask(first, firstClaim, false)
	ask(second, secondClaim, true)
	waits := ask(third, thirdClaim, true)
	release(first, firstClaim)
	ask(second, secondClaim, false)
	ask(passer, passerClaim, true)
	_ = passer.Release(ctx, passerClaim) // gives up
	secondClaim.TTL = long               // as renewals do
	if _, err := second.Renew(ctx, secondClaim); err != nil {
		t.Fatal(err)
	}
	server.FastForward(5 * short)
	release(second, secondClaim)
	if err := third.Wait(ctx, thirdClaim, waits); err != nil {
		t.Fatalf("Wait for a free key: %v", err)
	}
	ask(third, thirdClaim, false)
}

package e2e_test

import (
	"net/http"
	"testing"

	"example.com/shop/internal/app"
)

// openForCrowd is open for buyers who ask once, and are all served in the end, also on a busy machine.
func (k kind) openForCrowd(t *testing.T) *shop {
	t.Helper()
	s := k.open(t, func(_ int, settings *app.Settings) { settings.LockWait = 4 * patience })
	s.front.Timeout = 6 * patience
	return s
}

// lastUnit: 100 buyers want the last one, at once, from all instances.
func lastUnit(t *testing.T, k kind) {
	s := k.openForCrowd(t)
	s.create(0, "print", 1)
	s.wantSold(t, 1, atOnce(100, func(i int) answer {
		return s.buy(i, buyer(i), "key-1", "1 print")
	}))
	s.wantBooks(1)
}

// wantSold fails unless so many of the answers are orders, and all others turn their buyers away because nothing is
// left.
func (s *shop) wantSold(t *testing.T, want int, answers []answer) {
	t.Helper()
	sold := 0
	for i, a := range answers {
		switch {
		case a.status == http.StatusCreated:
			sold++
		case !a.soldOut():
			t.Errorf("request %d: got %d %s, %v; want an order or sold out", i, a.status, a.body, a.err)
		}
	}
	if sold != want {
		t.Errorf("got %d orders, want %d", sold, want)
	}
}

// duplicates: the same request 50 times at once, to all instances, is one order. Who is told that the first still runs
// asks again, as told.
func duplicates(t *testing.T, k kind) {
	s := k.open(t, nil)
	s.create(0, "mug", 100)
	answers := atOnce(50, func(i int) answer {
		return s.insist(i, func(on int) answer { return s.buy(on, "ann", "key-1", "2 mug") })
	})
	var first answer
	for _, a := range answers {
		if a.want(t, http.StatusCreated); a.header.Get("Idempotent-Replayed") == "" {
			if first.status != 0 {
				t.Fatalf("two orders: %s and %s", first.body, a.body)
			}
			first = a
		}
	}
	for _, a := range answers {
		if a.body != first.body {
			t.Errorf("got %s, want %s", a.body, first.body)
		}
	}
	if got := s.levelOf(1, "mug"); got != (level{Supplied: 100, Available: 98, Reserved: 2}) {
		t.Errorf("got %+v, want 2 of 100 reserved", got)
	}
	s.wantBooks(2)
}

// oppositeCarts: 60 buyers want the same two SKUs, half of them in the opposite order. No deadlock reaches them; while
// stock lasts all get both, and then nobody gets one of them.
func oppositeCarts(t *testing.T, k kind) {
	const carts = 60
	s := k.openForCrowd(t)
	race := func(one, two string) []answer {
		return atOnce(carts, func(i int) answer {
			first, second := "1 "+one, "2 "+two
			if i%2 == 1 {
				first, second = second, first
			}
			return s.buy(i, buyer(i), one, first, second)
		})
	}
	s.create(0, "cup", carts)
	s.create(0, "tea", 2*carts)
	s.wantSold(t, carts, race("cup", "tea"))

	s.create(0, "pen", carts)
	s.create(0, "ink", 51) // for 25 carts
	s.wantSold(t, 25, race("pen", "ink"))
	if got := s.levelOf(0, "pen"); got != (level{Supplied: carts, Available: carts - 25, Reserved: 25}) {
		t.Errorf("got %+v, want 25 reserved, for those who got both", got)
	}
	s.wantBooks(1)
}

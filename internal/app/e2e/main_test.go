// Package e2e_test tests the whole shop.
//
// Each starts three instances of one shop, wired as in production, on MySQL with Redis, on MariaDB with Redis, and on
// the embedded default, and uses them over HTTP alone, as buyers and an operator do: life cycles and races. What servers,
// networks, restarts and crashes do is for go run ./loadtest faults.
//
// What buyers and operator were told is written down as it comes in. When a test has done what it does, that book is
// compared with the shop's: every order that was acknowledged is there with the content that was acknowledged, there is
// no other, the levels are what follows from them, and the audit is clean.
package e2e_test

import (
	"testing"

	"go.uber.org/goleak"

	"example.com/shop/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }

// TestShop runs each scenario on each kind of shop, and compares the books after it.
func TestShop(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range scenarios() {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					s.run(t, k)
				})
			}
		})
	}
}

// scenario is something that buyers and operators do, and the promise that it tests.
type scenario struct {
	name string
	run  func(*testing.T, kind)
}

func scenarios() []scenario {
	return []scenario{
		{name: "life cycle", run: lifeCycle},
		{name: "foreign orders", run: foreignOrders},
		{name: "last unit", run: lastUnit},
		{name: "duplicates", run: duplicates},
		{name: "pay against expiry", run: payAgainstExpiry},
		{name: "pay against cancel", run: payAgainstCancel},
		{name: "carts in opposite order", run: oppositeCarts},
		{name: "sold out and back", run: soldOutAndBack},
		{name: "sold out time and again", run: soldOutAgain},
	}
}

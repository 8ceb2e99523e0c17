// Package servertest starts a Redis for a test.
package servertest

import (
	"cmp"
	"errors"
	"os"
	"testing"

	"example.com/shop/loadtest/peers/server"
)

// Start starts one that ends with the test. On a machine that cannot have one the
// test skips; with CI=true it fails where there is one that does not start.
func Start(t *testing.T) *server.Server {
	t.Helper()
	s, err := server.Start(t.Context(), cmp.Or(os.Getenv("SHOP_TEST_REDIS_IMAGE"), server.Image))
	switch {
	case errors.Is(err, server.ErrNone):
		t.Skipf("needs Redis: %v", err)
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("needs Redis, and with CI=true it is a failure that it does not start: %v", err)
	case err != nil:
		t.Skipf("needs Redis: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop %s: %v", s.Kind, err)
		}
	})
	return s
}

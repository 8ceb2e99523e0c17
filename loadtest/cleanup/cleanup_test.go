package cleanup_test

import (
	"errors"
	"fmt"
	"testing"

	"example.com/shop/loadtest/cleanup"
)

// "It can be told whatever else went wrong."
func TestFailed(t *testing.T) {
	t.Parallel()
	work, shop, server := errors.New("work"), errors.New("shop runs on"), errors.New("server runs on")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nothing failed":        {cleanup.Join(nil, nil), ""},
		"the work alone":        {cleanup.Join(work, nil), ""},
		"the clean-up alone":    {cleanup.Join(nil, shop), "clean-up failed: shop runs on"},
		"both":                  {cleanup.Join(work, shop), "clean-up failed: shop runs on"},
		"one inside of another": {cleanup.Join(fmt.Errorf("race: %w", cleanup.Join(work, shop)), server), "clean-up failed: shop runs on\nclean-up failed: server runs on"},
	} {
		got := ""
		if failed := cleanup.Failed(c.err); failed != nil {
			got = failed.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if err := cleanup.Join(work, shop); !errors.Is(err, work) || !errors.Is(err, shop) {
		t.Errorf("got %v, want both in it", err)
	}
}

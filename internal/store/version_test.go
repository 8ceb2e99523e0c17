package store_test

import (
	"regexp"
	"testing"

	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// "Version names the product and its version."
func TestVersion(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		got, err := store.Version(t.Context(), kind.New(t, "").Open(t))
		if want := regexp.MustCompile(`^` + kind.Name + ` \d+\.\d+\.\d+$`); err != nil || !want.MatchString(got) {
			t.Errorf("got %q, %v, want %v", got, err, want)
		}
		t.Log(got)
	})
}

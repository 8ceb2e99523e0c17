package app_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/app"
)

// The embedded server's TTLs really pass, or the leases of a crashed shop would
// stay for ever.
func TestEmbedded_ttlsPass(t *testing.T) {
	t.Parallel()
	e, err := app.StartEmbedded(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	client := redis.NewClient(&redis.Options{Addr: e.Redis()})
	defer client.Close()
	const ttl = 200 * time.Millisecond
	began := time.Now()
	if err := client.Set(t.Context(), "key", "value", ttl).Err(); err != nil {
		t.Fatal(err)
	}
	until(t, "the key is gone", 10*time.Second, func() bool {
		return client.Exists(t.Context(), "key").Val() == 0
	})
	if lived := time.Since(began); lived < ttl {
		t.Errorf("got a key that lived %v, want %v", lived, ttl)
	}
}

func TestEmbedded_badDirectory(t *testing.T) {
	t.Parallel()
	if _, err := app.StartEmbedded(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("got nil for a directory that is not there")
	}
}

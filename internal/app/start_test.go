package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"example.com/shop/internal/app"
)

// closedPort is an address at which nobody listens, or begins to.
const closedPort = "127.0.0.1:1"

// "An error that names the server which did not and what to check, and leaves nothing open": goleak looks for it.
func TestStart_serverDown(t *testing.T) {
	t.Parallel()
	const addr = closedPort
	for name, c := range map[string]struct {
		change func(*app.Settings)
		want   []string
	}{
		"mysql":     {func(s *app.Settings) { s.Data, s.MySQL = "", "shop:geheim@tcp("+addr+")/shop" }, []string{"mysql", addr, "check"}},
		"redis":     {func(s *app.Settings) { s.Redis = "redis://:geheim@" + addr }, []string{"redis", addr, "check"}},
		"zookeeper": {func(s *app.Settings) { s.ZooKeeper = addr }, []string{"zookeeper", addr, "check"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := embedded(t, 1)
			s.StartTimeout = 5 * time.Second // a busy machine migrates before it asks ZooKeeper
			c.change(&s)
			began := time.Now()
			_, err := app.Start(t.Context(), s)
			if err == nil {
				t.Fatal("got a shop without its " + name)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("got the error after %v, want it after %v", took, s.StartTimeout)
			}
			for _, word := range c.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("got %v, want %q in it", err, word)
				}
			}
			if strings.Contains(err.Error(), "geheim") {
				t.Errorf("got %v, want no password in it", err)
			}
		})
	}
}

// A wrong password stays wrong: nobody waits for it.
func TestStart_wrongRedisPassword(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	server.RequireAuth("right")
	s := embedded(t, 1)
	s.Redis = "redis://:geheim@" + server.Addr()
	s.StartTimeout = time.Minute
	began := time.Now()
	_, err := app.Start(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), "password") || strings.Contains(err.Error(), "geheim") {
		t.Errorf("got %v, want an error about the password, without it", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("got the error after %v, want it at once", took)
	}
}

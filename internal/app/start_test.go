package app_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/logs/logbook"
)

// closedPort is an address at which nobody listens, or begins to.
const closedPort = "127.0.0.1:1"

// "an error that names the server which did not and what to check"
func TestStart_serverDown(t *testing.T) {
	t.Parallel()
	const addr = closedPort
	for name, c := range map[string]struct {
		change func(*app.Settings)
		want   []string
	}{
		"mysql":     {func(s *app.Settings) { s.SQLite, s.MySQL = "", "shop:geheim@tcp("+addr+")/shop" }, []string{"mysql", addr, "check"}},
		"redis":     {func(s *app.Settings) { s.Redis = "redis://:geheim@" + addr }, []string{"redis", addr, "check"}},
		"zookeeper": {func(s *app.Settings) { s.ZooKeeper = addr }, []string{"zookeeper", addr, "check"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := embedded(t, 1)
			s.StartTimeout = 300 * time.Millisecond
			c.change(&s)
			began := time.Now()
			_, err := app.Start(t.Context(), s)
			if err == nil {
				t.Fatal("got a shop without its " + name)
			}
			if took := time.Since(began); took > 5*time.Second {
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

func TestStart_portTaken(t *testing.T) {
	t.Parallel()
	s := embedded(t, 1)
	first := start(t, s)
	s.Listen = first.Addr()
	if _, err := app.Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("got %v, want an error that names --listen", err)
	}
}

func TestStart_cancelled(t *testing.T) {
	t.Parallel()
	s := embedded(t, 1)
	s.Redis = closedPort
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := app.Start(ctx, s); err == nil {
		t.Error("got a shop on a cancelled context")
	}
}

// An old schema on a server is refused, and the message says what helps.
func TestStart_unmigrated(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB} {
		t.Run(name, func(t *testing.T) {
			s := embedded(t, 1)
			s.SQLite, s.MySQL = "", dsn(t)
			if _, err := app.Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "shop migrate") {
				t.Fatalf("got %v, want an error that names shop migrate", err)
			}
			migrate(t, s)
			untilReady(t, start(t, s))
		})
	}
}

// "The log does not call it a server."
func TestStart_tellsLocks(t *testing.T) {
	t.Parallel()
	for _, inside := range []bool{true, false} {
		var log logbook.Book
		s := embedded(t, 1)
		s.RedisEmbedded, s.Log = inside, slog.New(slog.NewTextHandler(&log, nil))
		want := `locks="redis at ` + s.Redis + `"`
		if inside {
			want = "locks=process"
		}
		start(t, s)
		if !log.Has(want) {
			t.Errorf("got log %s, want %s in it", &log, want)
		}
	}
}

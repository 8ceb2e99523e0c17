package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/lock/testserver"
)

// "Each outage is told once, and its end."
func TestCheck_logs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var answer error
		p := &parts{log: slog.New(slog.NewTextHandler(&log, nil))}
		check := p.check("database", func(context.Context) error { return answer })
		ask := func(times int, want error) {
			t.Helper()
			answer = want
			for range times {
				if got := check.Ping(t.Context()); !errors.Is(got, want) {
					t.Fatalf("got %v, want %v", got, want)
				}
				time.Sleep(time.Second)
			}
		}
		want := func(when string, lines ...string) {
			t.Helper()
			got := strings.Count(log.String(), "\n")
			for _, line := range lines {
				if !strings.Contains(log.String(), line) {
					t.Errorf("%s: got log %s, want %q in it", when, &log, line)
				}
			}
			if got != len(lines) {
				t.Errorf("%s: got %d lines, want %d:\n%s", when, got, len(lines), &log)
			}
			log.Reset()
		}
		ask(60, nil)
		want("all is well")
		ask(60, errors.New("connection refused"))
		want("no answer for a minute", `level=WARN msg="server does not answer, so the shop is not ready" server=database error="connection refused"`)
		ask(60, nil)
		want("answers again", `level=INFO msg="server answers again" server=database`)
	})
}

// "A shop whose connections are all in use is busy, and not without a database."
func TestReadyz_busyDatabase(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]func(testing.TB) (dsn string){
		"SQLite": nil, "MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := startOn(t, server)
			pool, err := shop.parts.database.db.DB()
			if err != nil {
				t.Fatal(err)
			}
			for range pool.Stats().MaxOpenConnections {
				conn, err := pool.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close() })
			}
			if status, body := get(t, shop.URL()+"/readyz"); status != http.StatusOK {
				t.Errorf("got %d %s of a shop whose connections are all in use, want 200", status, body)
			}
		})
	}
}

// startOn starts a shop on a new schema of a server, or a new file for nil, until the
// test ends.
func startOn(t *testing.T, server func(testing.TB) (dsn string)) *Shop {
	t.Helper()
	embedded, err := StartEmbedded(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = embedded.Close() })
	s := Default()
	s.Listen, s.Redis, s.SQLite, s.Lab = "127.0.0.1:0", embedded.Redis(), embedded.SQLite(), true
	if server != nil {
		s.MySQL, s.SQLite = server(t), ""
	}
	database, err := OpenDatabase(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	if _, err := database.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	shop, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shop.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return shop
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	w, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.StatusCode, string(text)
}

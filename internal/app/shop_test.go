package app_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/logs/logbook"
)

// "Several shops in one process are as separate as in several", and together
// they sell what there is.
func TestShop_threeShareOne(t *testing.T) {
	t.Parallel()
	const units, buyers = 20, 60
	s := embedded(t, units)
	shops := []*app.Shop{start(t, s), start(t, s), start(t, s)}
	var sold, refused atomic.Int64
	var wait sync.WaitGroup
	for i := range buyers {
		wait.Go(func() {
			w, err := buy(t, shops[i%len(shops)], fmt.Sprintf("key-%d", i), "Shop-Think: 1ms")
			switch {
			case err == nil && w.status == http.StatusCreated:
				sold.Add(1)
			case err == nil && w.status == http.StatusConflict && strings.Contains(w.body, "sold-out"):
				refused.Add(1)
			default:
				t.Errorf("got %d %s, %v", w.status, w.body, err)
			}
		})
	}
	wait.Wait()
	if sold.Load() != units || refused.Load() != buyers-units {
		t.Errorf("got %d sold and %d refused, want %d and %d", sold.Load(), refused.Load(), units, buyers-units)
	}
	wantAudit(t, shops[0], units)
}

// A key is known to all instances.
func TestShop_replayElsewhere(t *testing.T) {
	t.Parallel()
	s := embedded(t, 5)
	one, two := start(t, s), start(t, s)
	first, err := buy(t, one, "key-1")
	wantStatus(t, first, err, http.StatusCreated)
	again, err := buy(t, two, "key-1")
	wantStatus(t, again, err, http.StatusCreated)
	if first.body != again.body {
		t.Errorf("got %s, want %s", again.body, first.body)
	}
	wantAudit(t, one, 1)
}

// Readiness tells which server is gone; the process lives on.
func TestShop_redisGone(t *testing.T) {
	t.Parallel()
	s := embedded(t, 1)
	server := miniredis.RunT(t)
	s.Redis = server.Addr()
	shop := start(t, s)
	untilReady(t, shop)
	server.Close()
	until(t, "it names redis, and nothing else", 30*time.Second, func() bool {
		w, err := call(t, http.MethodGet, shop.URL()+"/readyz", "")
		return err == nil && w.status == http.StatusServiceUnavailable && strings.Contains(w.body, `"failing":["redis"]`)
	})
	w, err := call(t, http.MethodGet, shop.URL()+"/healthz", "")
	wantStatus(t, w, err, http.StatusOK)
}

// "A shop whose connections are all in use is busy, and not without a database."
func TestReadyz_busyDatabase(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]func(testing.TB) (dsn string){
		"SQLite": nil, "MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := embedded(t, 1)
			if server != nil {
				s.SQLite, s.MySQL = "", server(t)
				migrate(t, s)
			}
			shop := start(t, s)
			pool, err := shop.OrderConnections()
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
			w, err := call(t, http.MethodGet, shop.URL()+"/readyz", "")
			wantStatus(t, w, err, http.StatusOK)
		})
	}
}

// "So few that whoever holds one gets a connection. A SQLite file has one writer."
func TestShop_headStarts(t *testing.T) {
	t.Parallel()
	if got := start(t, embedded(t, 1)).HeadStarts(); got != 0 {
		t.Errorf("SQLite: %d, want none", got)
	}
	if got := start(t, onMySQL(t, embedded(t, 1))).HeadStarts(); got != 8 { // of 32 connections
		t.Errorf("MySQL: %d, want 8", got)
	}
}

// A database that says nothing any more makes the shop unready as one that hangs up
// does, is told, and is back when it answers.
func TestShop_databaseAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		away, back func(*testserver.Server, testing.TB)
	}{
		"gone":   {(*testserver.Server).Kill, (*testserver.Server).Restart},
		"silent": {(*testserver.Server).Pause, (*testserver.Server).Unpause},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, log := testserver.StartMariaDB(t), &logbook.Book{}
			s := embedded(t, 1)
			s.SQLite, s.MySQL = "", server.DSN(t)
			s.Log = slog.New(slog.NewTextHandler(log, nil))
			migrate(t, s)
			shop := start(t, s)
			untilReady(t, shop)
			c.away(server, t)
			until(t, "it names the database, and nothing else", 30*time.Second, func() bool {
				began := time.Now()
				w, err := call(t, http.MethodGet, shop.URL()+"/readyz", "")
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("the answer took %v, want about 2s at most", took)
				}
				return err == nil && w.status == http.StatusServiceUnavailable && strings.Contains(w.body, `"failing":["database"]`)
			})
			c.back(server, t)
			untilReady(t, shop)
			began, ended := strings.Count(log.String(), "server does not answer"), strings.Count(log.String(), "server answers again")
			if began < 1 || began > ended+1 { // a busy machine may add one, and its end
				t.Errorf("outages began %d times and ended %d times:\n%s", began, ended, log)
			}
		})
	}
}

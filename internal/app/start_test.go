package app_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// closedPort is an address on which no server listens.
const closedPort = "127.0.0.1:1"

// "Start returns an error that names the server and what to check, and leaves nothing open": goleak looks for it.
func TestStart_serverDown(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*app.Settings){
		"mysql": func(s *app.Settings) { s.Data, s.MySQL = "", "shop:geheim@tcp("+closedPort+")/shop" },
		"redis": func(s *app.Settings) { s.Redis = "redis://:geheim@" + closedPort },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := embedded(t, 1)
			s.StartTimeout = 5 * time.Second // a busy machine migrates before it asks the others
			change(&s)
			began := time.Now()
			_, err := app.Start(t.Context(), s, app.Hooks{})
			if err == nil {
				t.Fatal("got a shop without its " + name)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("got the error after %v, want it after %v", took, s.StartTimeout)
			}
			for _, word := range []string{name, closedPort, "check"} {
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

// A start that loses a connection, at any statement or command, connects again: "A shop that starts waits up to
// `--start-timeout` (30 seconds) for servers that do not answer."
func TestStart_losesConnection(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]func(t *testing.T, s *app.Settings, judge func(string) testserver.Fate){
		"mysql": func(t *testing.T, s *app.Settings, judge func(string) testserver.Fate) {
			t.Helper()
			s.Data, s.MySQL = "", testserver.MySQL(t)
			supply(t, *s, 1)
			s.MySQL, _ = testserver.Judged(t, s.MySQL, judge)
		},
		"redis": func(t *testing.T, s *app.Settings, judge func(string) testserver.Fate) {
			t.Helper()
			link := testserver.LinkTo(t, s.Redis)
			link.Judge(judge)
			s.Redis = link.Addr
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent, lost atomic.Int64
			s := embedded(t, 1)
			through(t, &s, func(string) testserver.Fate {
				if sent.Add(1) == lost.Load() {
					return testserver.Drop
				}
				return testserver.Pass
			})
			for sent.Store(1); sent.Load() > lost.Load(); { // until a start does without the lost one
				sent.Store(0)
				lost.Add(1)
				shop, err := app.Start(t.Context(), s, app.Hooks{})
				if err != nil {
					t.Fatalf("without %d: %v", lost.Load(), err)
				}
				testserver.Must(t, shop.Shutdown(t.Context()))
			}
			if lost.Load() < 3 {
				t.Errorf("only %d were lost", lost.Load())
			}
		})
	}
}

// "permanent reports whether waiting cannot help": it is said at once, in the server's words.
func TestStart_redisRefuses(t *testing.T) {
	t.Parallel()
	addr := testserver.Redis(t)
	admin := redis.NewClient(&redis.Options{Addr: addr})
	defer admin.Close()
	testserver.Must(t, admin.Do(t.Context(), "ACL", "SETUSER", "refused", "on", ">right", "~*", "&*", "-@all").Err())
	testserver.Must(t, admin.Do(t.Context(), "ACL", "SETUSER", "unscripted", "on", ">right", "~*", "&*", "+@all", "-@scripting").Err())
	locked := miniredis.RunT(t)
	locked.RequireAuth("right")
	sentinel := miniredis.RunT(t)
	// It knows no such master.
	testserver.Must(t, sentinel.Server().Register("SENTINEL", func(c *server.Peer, _ string, _ []string) { c.WriteNull() }))
	for url, want := range map[string]string{
		"redis://" + sentinel.Addr() + "?master_name=other": "redis: nil; check that it runs, the address with its master_name",
		"redis://:geheim@" + locked.Addr():                  "WRONGPASS",
		"redis://" + locked.Addr():                          "NOAUTH",
		"redis://nobody:geheim@" + addr:                     "WRONGPASS",
		"redis://refused:right@" + addr:                     "NOPERM",
		"redis://" + addr + "/99":                           "ERR DB index is out of range",
		"redis://unscripted:right@" + addr:                  "NOPERM",
		"redis://" + addr + "?cluster=true":                 "ERR This instance has cluster support disabled",
	} {
		s := embedded(t, 1)
		s.Redis, s.StartTimeout = url, time.Minute
		began := time.Now()
		_, err := app.Start(t.Context(), s, app.Hooks{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: got %v, want %s, and no password", url, err, want)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: got the error after %v, want it at once", url, took)
		}
	}
}

package app_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// untilUnready waits until /readyz fails and names the server, its address and the reason.
func untilUnready(t *testing.T, shop *app.Shop, server, addr, reason string) {
	t.Helper()
	testserver.Until(t, "/readyz says "+reason, 30*time.Second, func() bool {
		a := call(t, http.MethodGet, shop.URL()+"/readyz", "")
		return a.Status == http.StatusServiceUnavailable && strings.Contains(a.Body, `"failing":["`+server+`"]`) &&
			strings.Contains(a.Body, addr) && strings.Contains(a.Body, reason)
	})
}

// "Writable returns nil if the database accepts the writes of an order, or an error with the server's own words."
func TestReadyz_database(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open     func(context.Context) (*testserver.Server, error)
		another  string // a second host in the DSN
		readOnly string
	}{
		"MariaDB":              {testserver.OpenMariaDB, "", "read_only"},
		"MySQL":                {testserver.OpenMySQL, "", "super_read_only"},
		"MySQL, several hosts": {testserver.OpenMySQL, "," + closedPort, "read_only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testserver.Start(t, c.open)
			sql := func(statements ...string) { testserver.Must(t, server.SQL(t.Context(), statements...)) }
			dsn, err := server.NewSchema(t.Context(), "shop")
			testserver.Must(t, err)
			s := embedded(t, 5)
			s.Data, s.MySQL = "", dsn
			supply(t, s, 5)
			sql("CREATE USER shop@'%' IDENTIFIED BY 'geheim'", "GRANT SELECT ON shop.* TO shop@'%'")
			if c.another != "" {
				sql("GRANT SELECT ON performance_schema.replication_group_members TO shop@'%'")
			}
			s.MySQL = "shop:geheim@tcp(" + server.Addr() + c.another + ")/shop"
			for _, right := range []string{"INSERT", "UPDATE", "DELETE"} { // if a right is missing, the start fails
				if _, err := app.Start(t.Context(), s, app.Hooks{}); err == nil ||
					!strings.Contains(err.Error(), right+" command denied to user 'shop'@") {
					t.Errorf("without %s: got %v, want an error that the command is denied", right, err)
				}
				sql("GRANT " + right + " ON shop.* TO shop@'%'")
			}
			shop := start(t, s)
			untilReady(t, shop)
			buy(t, shop, "key-1", as(t, "ann")).Want(t, http.StatusCreated)
			sql("SET GLOBAL " + c.readOnly + " = 1")
			untilUnready(t, shop, "database", server.Addr(), "read-only")
			sql("SET GLOBAL "+c.readOnly+" = 0", "SET GLOBAL read_only = 0") // super_read_only has set both
			untilReady(t, shop)
		})
	}
}

// "After a write that found the disk of the database full, it fails for ten seconds", and names the cause.
func TestReadyz_diskFull(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, *app.Settings) (fill, free func()){
		"SQLite": func(t *testing.T, s *app.Settings) (fill, free func()) {
			disk := t.TempDir()
			if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk).CombinedOutput(); err != nil {
				t.Skipf("needs a small disk: mount: %v, %s", err, out)
			}
			t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "umount", "-l", disk).Run() })
			s.Data = disk
			filler := filepath.Join(disk, "filler")
			return func() { _ = os.WriteFile(filler, make([]byte, 3<<20), 0o600) }, func() { testserver.Must(t, os.Remove(filler)) }
		},
		"MySQL": func(t *testing.T, s *app.Settings) (fill, free func()) {
			server := testserver.Start(t, testserver.OpenMySQLSmallDisk)
			s.Data, s.MySQL = "", server.DSN(t)
			return func() { testserver.Must(t, server.FillDisk(t.Context())) }, func() { testserver.Must(t, server.FreeDisk(t.Context())) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := embedded(t, 1)
			fill, free := open(t, &s)
			supply(t, s, 1_000_000)
			shop := start(t, s)
			fill()
			bought := 0
			testserver.Until(t, "no order finds room", 3*time.Minute, func() bool {
				status := buy(t, shop, fmt.Sprint("key-", bought)).Status
				if status == http.StatusCreated {
					bought++
				}
				return status == http.StatusServiceUnavailable
			})
			untilUnready(t, shop, "database", "", " is full")
			free()
			untilReady(t, shop)
			buy(t, shop, fmt.Sprint("key-", bought)).Want(t, http.StatusCreated)
			wantAudit(t, shop, int64(bought+1))
		})
	}
}

// "If the path of the SQLite file leads to another file by now, or to none", no order is lost in the
// file that was opened.
func TestReadyz_fileReplaced(t *testing.T) {
	t.Parallel()
	s := embedded(t, 5)
	shop := start(t, s)
	buy(t, shop, "key-1").Want(t, http.StatusCreated)
	file := filepath.Join(s.Data, "shop.db")
	testserver.Must(t, os.Rename(file, file+".old"))
	for _, replace := range []func() error{
		func() error { return nil },
		func() error { return os.WriteFile(file, nil, 0o600) },
	} {
		testserver.Must(t, replace())
		untilUnready(t, shop, "database", file, "was replaced or removed while it was open: restart the shop")
		buy(t, shop, "key-2").Want(t, http.StatusServiceUnavailable)
	}
	testserver.Must(t, os.Rename(file+".old", file))
	untilReady(t, shop)
	buy(t, shop, "key-2").Want(t, http.StatusCreated)
	wantAudit(t, shop, 2)
}

// If Redis answers but cannot grant leases, a shop that sells by the strategy redis is unready.
func TestReadyz_redis(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, testserver.OpenRedis)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = admin.Close() })
	s := embedded(t, 1)
	s.Redis, s.Strategy = server.Addr(), "redis"
	shop := start(t, s)
	for _, c := range []struct{ set, undo, reason string }{
		{"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY"},
		{"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "OOM"},
		{"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "NOREPLICAS"},
		{"ACL SETUSER default -@scripting", "ACL SETUSER default +@all", "NOPERM"},
		{"ACL SETUSER default -get", "ACL SETUSER default +@all", "redis: acquire: "},
		{"ACL SETUSER default resetkeys ~rate:*", "ACL SETUSER default allkeys", "NOPERM"},
	} {
		untilReady(t, shop)
		for _, command := range []string{c.set, c.undo} {
			var words []any
			for word := range strings.SplitSeq(command, " ") {
				words = append(words, word)
			}
			testserver.Must(t, admin.Do(t.Context(), words...).Err())
			if command == c.set {
				untilUnready(t, shop, "redis", server.Addr(), c.reason)
			}
		}
	}
	untilReady(t, shop)
	buy(t, shop, "key-1").Want(t, http.StatusCreated)
}

// "Sales do not depend on Redis": orders are placed while Redis is silent, and while Redis is gone. When Redis is
// back, orders have leases again.
func TestShop_withoutRedis(t *testing.T) {
	t.Parallel()
	type broken struct {
		link   *testserver.Link
		server *testserver.Server
	}
	for name, c := range map[string]struct{ fault, repair func(*testing.T, *broken) }{
		"silent": {
			func(_ *testing.T, b *broken) { b.link.Silence(true, true) },
			func(_ *testing.T, b *broken) { b.link.Heal() },
		},
		"gone": {
			func(t *testing.T, b *broken) { testserver.Must(t, b.server.Do(t.Context(), testserver.Kill)) },
			func(t *testing.T, b *broken) { testserver.Must(t, b.server.Do(t.Context(), testserver.Restart)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &broken{server: testserver.Start(t, testserver.OpenRedis)}
			var err error
			b.link, err = testserver.NewLink(t.Context(), false, b.server.Addr())
			testserver.Must(t, err)
			t.Cleanup(b.link.Close)
			var log testserver.LogBuffer
			s := embedded(t, 100)
			s.Redis, s.RateLimit, s.Log = b.link.Addr, app.Default().RateLimit, slog.New(slog.NewTextHandler(&log, nil)) // the default limit
			shop := start(t, s)
			says := func(answer string) {
				t.Helper()
				testserver.Until(t, "/readyz says "+answer, patience, func() bool {
					return call(t, http.MethodGet, shop.URL()+"/readyz", "").Want(t, http.StatusOK).Body == answer+"\n"
				})
			}
			says(`{"status":"ready"}`)
			buy(t, shop, "before").Want(t, http.StatusCreated)

			c.fault(t, b)
			for i := range 3 {
				buy(t, shop, fmt.Sprint("without-", i)).Want(t, http.StatusCreated)
			}
			says(`{"status":"ready","without":["redis"]}`)
			if metrics := scrape(t, shop); !strings.Contains(metrics, "\nshop_unleased_batches_total 3\n") ||
				!log.Has(`msg="orders are sold without leases" errors=1`) {
				t.Errorf("got log %s and metrics %s, want three batches without leases", &log, metrics)
			}
			for i, fence := range fences(t, shop) {
				if (fence > 0) != (i == 0) {
					t.Errorf("order %d: got fence %d", i, fence)
				}
			}

			c.repair(t, b)
			orders := int64(4)
			testserver.Until(t, "orders have leases", patience, func() bool {
				orders++
				buy(t, shop, fmt.Sprint("after-", orders)).Want(t, http.StatusCreated)
				all := fences(t, shop)
				return all[len(all)-1] > 0
			})
			says(`{"status":"ready"}`)
			if !log.Has(`msg="orders are sold without leases: over"`) {
				t.Errorf("got log %s, want the end of the sales without leases in it", &log)
			}
			wantAudit(t, shop, orders)
		})
	}
}

// fences returns the fences under which orders took mugs, the earliest first; 0 for none.
func fences(t *testing.T, shop *app.Shop) (all []int64) {
	t.Helper()
	var ledger struct {
		Movements []struct {
			Kind  string
			Fence int64
		}
	}
	operate(shop, http.MethodGet, "/v1/skus/mug/movements?limit=100", "").Want(t, http.StatusOK).Decode(t, &ledger)
	for _, m := range ledger.Movements {
		if m.Kind == "reserve" {
			all = append(all, m.Fence)
		}
	}
	return all
}

// "On Redis 6.2 or later, or on Valkey, the shop's user needs these rights and no others": with these rights, an
// order that waits for its lease, the rate limit and /readyz work. Redis refuses no command, and each command is used.
func TestRedisRights(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, testserver.OpenRedis)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = admin.Close() })
	rights := grantRights(t, admin, "")
	var log testserver.LogBuffer
	s := embedded(t, 5)
	s.Redis, s.Log = "redis://shop:secret@"+server.Addr(), slog.New(slog.NewTextHandler(&log, nil))
	s.RateLimit, s.LeaseWait = 3, 10*time.Second // the limit is so low that Redis counts each request
	shop := start(t, s)
	untilReady(t, shop)

	lease, _ := takeLease(t, s, "sku:mug")
	sold := make(chan answer, 1)
	go func() { sold <- buy(t, shop, "key-1", as(t, "ann")) }()
	testserver.Until(t, "the order is in line", patience, func() bool { return admin.ZCard(t.Context(), "lock:{sku:mug}:line").Val() == 1 })
	testserver.Must(t, lease.Release())
	(<-sold).Want(t, http.StatusCreated)
	// The bucket would be full in 2050, as if the clock of Redis had stepped back. So the bucket starts again.
	testserver.Must(t, admin.Set(t.Context(), "rate:buyer:ann", 1_041_379_200, 0).Err())
	buy(t, shop, "key-2", as(t, "ann")).Want(t, http.StatusCreated)
	buy(t, shop, "key-3", as(t, "ann")).Want(t, http.StatusCreated)
	testserver.Must(t, shop.Shutdown(t.Context()))

	wantNothingRefused(t, admin)
	if log.Has("NOPERM") {
		t.Errorf("got log %s, want nothing refused", &log)
	}
	used := admin.InfoMap(t.Context(), "commandstats")
	for right := range strings.SplitSeq(rights, " ") {
		if name, ok := strings.CutPrefix(right, "+"); ok && used.Item("Commandstats", "cmdstat_"+name) == "" {
			t.Errorf("the right to send %s is not used", name)
		}
	}
}

// grantRights creates the user shop with the rights that docs/operations.md lists, and with the rights in more, which
// the page names elsewhere.
func grantRights(t *testing.T, admin *redis.Client, more string) (rights string) {
	t.Helper()
	text := readFile(t, "../../docs/operations.md")
	line := regexp.MustCompile(`\n    ACL SETUSER shop (.*)\n`).FindStringSubmatch(text)
	if line == nil || !strings.Contains(text, more) {
		t.Fatalf("docs/operations.md does not list the rights, or does not name %q", more)
	}
	command := []any{"ACL", "SETUSER", "shop"}
	for _, right := range strings.Fields(line[1] + " " + more) {
		command = append(command, right)
	}
	testserver.Must(t, admin.Do(t.Context(), command...).Err())
	return line[1]
}

func wantNothingRefused(t *testing.T, admin *redis.Client) {
	t.Helper()
	if refused, err := admin.ACLLog(context.Background(), 10).Result(); len(refused) > 0 || err != nil {
		t.Errorf("Redis refused %+v, %v, want nothing", refused, err)
	}
}

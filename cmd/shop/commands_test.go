package main

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/alicebob/miniredis/v2"
	_ "modernc.org/sqlite"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// A wrong flag says what is right, with exit code 2.
func TestRun_usage(t *testing.T) {
	t.Parallel()
	const dsn = "shop:geheim@tcp(127.0.0.1:1)/shop"
	data := t.TempDir()
	for name, c := range map[string]struct {
		variables []string
		args      string
		want      string
	}{
		"unknown command":    {nil, "sell", "shop --help"},
		"unknown flag":       {nil, "serve --lisen :0", "--listen"},
		"bad duration":       {nil, "serve --lock-ttl 2", "--lock-ttl"},
		"wrong strategy":     {nil, "serve --strategy none", `"lanes","batch","redis","conditional","optimistic","for-update"`},
		"bad DSN":            {nil, "serve --mysql mysql://shop@db/shop --redis db:1", "user:password@tcp(host:port)/database"},
		"empty redis":        {nil, "serve --redis=", "--redis: is empty"},
		"backup to where":    {nil, "backup --data " + data, "<file>"},
		"two databases":      {nil, "serve --mysql a:b@tcp(c:1)/d --data " + data, "can't be used together"},
		"two by variables":   {[]string{"SHOP_MYSQL=a:b@tcp(c:1)/d", "SHOP_DATA=" + data}, "audit", "can't be used together"},
		"bad variable":       {[]string{"SHOP_LOCK_TTL=soon"}, "serve", "SHOP_LOCK_TTL"},
		"variable, too low":  {[]string{"SHOP_PAY_WITHIN=1ms"}, "serve", "pay-within: 1ms: want 1s to 720h0m0s"},
		"audit of what":      {nil, "audit", "--data DIR"},
		"seed nothing":       {nil, "seed --data " + data, "--sku NAME"},
		"seed without units": {nil, "seed --data " + data + " --sku mug", "1 --sku and 0 --units"},
		"seed name":          {nil, "seed --data " + data + " --sku Mug --units 1", "a-z"},
		"seed currency":      {nil, "seed --data " + data + " --sku mug --units 1 --currency euro", "EUR"},
		"CA, no such file":   {nil, "migrate --mysql " + dsn + " --mysql-ca /nowhere/ca.pem", "/nowhere/ca.pem"},
		"ready where":        {nil, "ready --url localhost", "http://127.0.0.1:8080"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := shopWith(t, c.variables, strings.Fields(c.args)...)
			r.want(t, app.ExitUsage, c.want, "--help")
			if r.stdout != "" {
				t.Errorf("got %s on standard output, want nothing", r.stdout)
			}
		})
	}
}

func TestRun_help(t *testing.T) {
	t.Parallel()
	shop(t, "--help").want(t, app.ExitDone, "serve", "migrate", "seed", "audit", "backup", "token", "ready", "version")
	for _, name := range []string{"serve", "migrate", "seed", "audit", "backup", "token", "ready"} {
		shop(t, name, "--help").want(t, app.ExitDone, "Example", "shop "+name)
	}
	shop(t, "serve", "--help").want(t, app.ExitDone, "$SHOP_MYSQL", "$SHOP_REDIS", `--listen="127.0.0.1:8080"`)
	shop(t, "token", "--help").want(t, app.ExitDone, "$SHOP_TOKEN_SECRET", "openssl rand", "shop:buyer", "--ttl=1h")
	shop(t, "audit", "--help").want(t, app.ExitDone, "I1 ", "I2 ", "I5 ")
	if said := shell(t, "for c in serve audit backup; do shop $c --help | true; done"); said != "" {
		t.Errorf("got %s of a closed pipe, want a quiet end", said)
	}
	shop(t, "--version").want(t, app.ExitDone, "shop ", "go1.")
	for typed, same := range map[string]string{
		"": "--help", "help": "--help", "help serve": "serve --help", "serve --version": "--version",
	} {
		got, want := shop(t, strings.Fields(typed)...), shop(t, strings.Fields(same)...)
		if got != want {
			t.Errorf("shop %s: got %+v, want what shop %s answers, %+v", typed, got, same, want)
		}
	}
}

// closedPort is an address on which no server listens.
const closedPort = "127.0.0.1:1"

func TestSeed_existing(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	shop(t, "seed", "--data", data, "--sku", "mug", "--units", "3", "--sku", "cup", "--units", "4", "--price", "250").
		want(t, app.ExitDone, "mug: 3 units at 250 minor units of EUR", "cup: 4 units at 250 minor units of EUR")
	shop(t, "seed", "--data", data, "--sku", "hat", "--units", "1", "--sku", "mug", "--units", "9").
		want(t, app.ExitFailed, `sku "mug": SKU exists already`)
	shop(t, "audit", "--data", data).want(t, app.ExitDone, "2 SKUs, 0 order lines, 0 units ordered of 7 supplied")
}

func TestAudit_exitCodes(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	shop(t, "audit", "--data", data).want(t, app.ExitFailed, "no shop in")
	shop(t, "seed", "--data", data, "--sku", "mug", "--units", "3").want(t, app.ExitDone)
	shop(t, "audit", "--data", data).want(t, app.ExitDone, "0 differences")
	shop(t, "audit", "--data", data, "--sku", "cup").want(t, app.ExitFailed, "unknown SKU")

	spoil(t, data)
	shop(t, "audit", "--data", data).want(t, app.ExitFailed, "I1 sku mug: ", "I5 sku mug: ", "differences")
	r := shop(t, "audit", "--data", data, "--sku", "mug", "--json")
	r.want(t, app.ExitFailed)
	var report struct {
		OK          bool
		Differences []struct{ Invariant, SKU string }
	}
	testserver.Must(t, json.Unmarshal([]byte(r.stdout), &report))
	if report.OK || len(report.Differences) == 0 || report.Differences[0].SKU != "mug" {
		t.Errorf("got %s, want differences of mug", r.stdout)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	s := startShop(t, "--drain-delay", "1m")
	testserver.Until(t, "it says ready", patience, func() bool {
		r := shop(t, "ready", "--url", s.url)
		return r.code == app.ExitDone && r.stdout == "ready\n"
	})
	testserver.Until(t, "it says ready of SHOP_URL", patience, func() bool {
		r := shopWith(t, []string{"SHOP_URL=" + s.url + "/"}, "ready")
		return r.code == app.ExitDone && r.stdout == "ready\n"
	})
	s.signal(t, syscall.SIGTERM)
	testserver.Until(t, "readiness fails", patience, func() bool {
		return send(http.MethodGet, s.url+"/readyz", "").Status == http.StatusServiceUnavailable
	})
	shop(t, "ready", "--url", s.url).want(t, app.ExitFailed, "shutting down")
	s.signal(t, syscall.SIGKILL)
	s.wait(t)
	shop(t, "ready", "--url", s.url).want(t, app.ExitFailed, "not ready")
}

// "`shop ready` prints `ready, without redis`", and a shop that needs Redis is not ready.
func TestReady_withoutRedis(t *testing.T) {
	t.Parallel()
	locks := miniredis.RunT(t)
	args := append(withSecret(t), "--redis", locks.Addr())
	lanes, perOrder := startShop(t, args...), startShop(t, append(args, "--strategy", "redis")...)
	locks.Close()
	testserver.Until(t, "it says that it sells without Redis", patience, func() bool {
		r := shop(t, "ready", "--url", lanes.url)
		return r.code == app.ExitDone && r.stdout == "ready, without redis\n"
	})
	testserver.Until(t, "it says that it needs Redis", patience, func() bool {
		r := shop(t, "ready", "--url", perOrder.url)
		return r.code == app.ExitFailed && strings.Contains(r.stderr, `"failing":["redis"]`)
	})
}

// spoil makes a unit vanish behind the shop's back, as a lost update does.
func spoil(t *testing.T, data string) {
	t.Helper()
	db, err := sql.Open("sqlite", app.DatabaseFile(data))
	testserver.Must(t, err)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE skus SET available = available - 1 WHERE name = ?", "mug"); err != nil {
		t.Fatal(err)
	}
}

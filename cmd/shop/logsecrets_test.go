package main

import (
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/lock/testserver"
)

// "Buyers, tokens and idempotency keys are in none" of the log's lines, nor is a
// password or the secret: at level debug, through refusals, twins, and the loss of
// the lock server.
func TestServe_logsNoSecret(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(*testing.T) (args []string, password string){
		"SQLite": func(t *testing.T) ([]string, string) { return []string{"--data", t.TempDir()}, "" },
		"MySQL":  secretDatabase,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args, password := database(t)
			locks := miniredis.RunT(t)
			locks.RequireAuth("geheim-redis")
			path := secretFile(t, 0o600)
			shop := startShop(t, append(args, "--log-level", "debug", "--log-format", "json", "--token-secret-file", path,
				"--redis", "redis://:geheim-redis@"+locks.Addr(), "--lock-ttl", "200ms", "--lock-wait", "2s")...)
			token := mint(t, path)
			signed := "Authorization: Bearer " + token

			buy(shop.url, "geheim-key-1", signed).want(t, http.StatusCreated)
			buy(shop.url, "geheim-key-1", signed).want(t, http.StatusCreated)
			send(http.MethodPost, shop.url+"/v1/orders", `{"lines":[{"sku":"demo-mug","quantity":2}]}`,
				signed, "Content-Type: application/json", "Idempotency-Key: geheim-key-1").want(t, http.StatusUnprocessableEntity)
			buy(shop.url, "geheim-key-"+strings.Repeat("x", 255), signed).want(t, http.StatusBadRequest)
			buy(shop.url, "geheim-key-2").want(t, http.StatusUnauthorized)
			buy(shop.url, "geheim-key-2", signed+"x").want(t, http.StatusUnauthorized)
			buy(shop.url, "geheim-key-2", "Authorization: Basic "+token).want(t, http.StatusUnauthorized)
			var twins sync.WaitGroup
			for range 10 {
				twins.Go(func() { buy(shop.url, "geheim-key-3", signed) })
			}
			twins.Wait()
			locks.Close()
			buy(shop.url, "geheim-key-4", signed).want(t, http.StatusServiceUnavailable)
			shop.signal(t, syscall.SIGTERM)
			shop.wait(t)

			log := shop.stderr.String()
			for _, line := range []string{`"problem":"key-reused"`, `"problem":"key-invalid"`, `"problem":"no-token"`, `"problem":"bad-token"`, `"level":"WARN"`} {
				if !strings.Contains(log, line) {
					t.Errorf("got log %s, want %s in it", log, line)
				}
			}
			for what, secret := range map[string]string{
				"idempotency key": "geheim-key", "token": token, "token's signature": token[strings.LastIndex(token, ".")+1:],
				"buyer": "geheim-ann", "token secret": testSecret, "redis password": "geheim-redis", "mysql password": password,
			} {
				if secret != "" && strings.Contains(log, secret) {
					t.Errorf("got log %s, want no %s in it", log, what)
				}
			}
		})
	}
}

// mint returns a token of geheim-ann.
func mint(t *testing.T, secretPath string) string {
	t.Helper()
	minted := shop(t, "token", "--buyer", "geheim-ann", "--token-secret-file", secretPath)
	minted.want(t, exitDone)
	return strings.TrimSpace(minted.stdout)
}

// secretDatabase returns the flags for a MySQL with a mug in it, whose user has a
// password that no log has by chance.
func secretDatabase(t *testing.T) (args []string, password string) {
	t.Helper()
	root := testserver.MySQL(t)
	config, err := mysql.ParseDSN(root)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	user := "u" + config.DBName[len(config.DBName)-12:]
	for _, statement := range []string{
		fmt.Sprintf("CREATE USER %s IDENTIFIED BY 'geheim-mysql'", user),
		fmt.Sprintf("GRANT ALL ON %s.* TO %s", config.DBName, user),
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = db.Exec("DROP USER " + user) })
	config.User, config.Passwd = user, "geheim-mysql"
	args = []string{"--mysql", config.FormatDSN()}
	shop(t, append([]string{"migrate"}, args...)...).want(t, exitDone)
	shop(t, append([]string{"seed", "--sku", "demo-mug", "--units", "9"}, args...)...).want(t, exitDone)
	return args, config.Passwd
}

package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// Buyers, tokens and idempotency keys are in none of the log's lines, nor is a password or the secret: at level
// debug, through refusals, twins, and the loss of the lock server.
func TestServe_logsNoSecret(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(*testing.T) []string{
		"SQLite": func(t *testing.T) []string { return []string{"--data", t.TempDir()} },
		"MySQL":  func(t *testing.T) []string { return stocked(t, testserver.MySQL(t), 9) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := miniredis.RunT(t)
			locks.RequireAuth("geheim-redis")
			path := secretFile(t, 0o600)
			shop := startShop(t, append(database(t), "--log-level", "debug", "--log-format", "json", "--token-secret-file", path,
				"--redis", "redis://:geheim-redis@"+locks.Addr())...)
			token := mint(t, path)
			signed := "Authorization: Bearer " + token

			buy(shop.url, "geheim-key-1", signed).Want(t, http.StatusCreated)
			buy(shop.url, "geheim-key-1", signed).Want(t, http.StatusCreated)
			send(http.MethodPost, shop.url+"/v1/orders", `{"lines":[{"sku":"demo-mug","quantity":2}]}`,
				signed, "Content-Type: application/json", "Idempotency-Key: geheim-key-1").Want(t, http.StatusUnprocessableEntity)
			buy(shop.url, "geheim-key-"+strings.Repeat("x", 255), signed).Want(t, http.StatusBadRequest)
			buy(shop.url, "geheim-key-2").Want(t, http.StatusUnauthorized)
			buy(shop.url, "geheim-key-2", signed+"x").Want(t, http.StatusUnauthorized)
			buy(shop.url, "geheim-key-2", "Authorization: Basic "+token).Want(t, http.StatusUnauthorized)
			var twins sync.WaitGroup
			for range 10 {
				twins.Go(func() { buy(shop.url, "geheim-key-3", signed) })
			}
			twins.Wait()
			locks.Close()
			buy(shop.url, "geheim-key-4", signed).Want(t, http.StatusCreated)
			shop.signal(t, syscall.SIGTERM)
			shop.wait(t)

			log := shop.stderr.String()
			for line := range strings.Lines(log) {
				if !json.Valid([]byte(line)) {
					t.Errorf("got log line %s, want JSON", line)
				}
			}
			for _, line := range []string{`"problem":"key-reused"`, `"problem":"key-invalid"`, `"problem":"no-token"`, `"problem":"bad-token"`, `"msg":"orders are sold without leases"`} {
				if !strings.Contains(log, line) {
					t.Errorf("got log %s, want %s in it", log, line)
				}
			}
			for what, secret := range map[string]string{
				"idempotency key": "geheim-key", "token": token, "token's signature": token[strings.LastIndex(token, ".")+1:],
				"buyer": "geheim-ann", "token secret": testSecret, "redis password": "geheim-redis",
			} {
				if strings.Contains(log, secret) {
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
	minted.want(t, app.ExitDone)
	return strings.TrimSpace(minted.stdout)
}

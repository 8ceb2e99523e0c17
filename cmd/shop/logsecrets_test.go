package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// Neither a buyer nor a token, an idempotency key, a password or the secret is in the log: at level debug, through refusals
// and the loss of Redis.
func TestServe_logsNoSecret(t *testing.T) {
	t.Parallel()
	locks := miniredis.RunT(t)
	locks.RequireAuth("geheim-redis")
	s := startShop(t, append(withSecret(t), "--log-level", "debug", "--redis", "redis://:geheim-redis@"+locks.Addr())...)
	ann := as(t, "geheim-ann")
	buy(s.url, "geheim-key", ann).Want(t, http.StatusCreated)
	buy(s.url, "geheim-key"+strings.Repeat("x", 255), ann).Want(t, http.StatusBadRequest)
	buy(s.url, "geheim-key", ann+"x").Want(t, http.StatusUnauthorized)
	locks.Close()
	buy(s.url, "geheim-key-2", ann).Want(t, http.StatusCreated)
	s.signal(t, syscall.SIGTERM)
	s.wait(t)

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
			for _, line := range []string{`"problem":"key-reused"`, `"problem":"key-invalid"`, `"problem":"no-token"`,
				`"problem":"bad-token"`, `"msg":"orders are sold without leases"`} {
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

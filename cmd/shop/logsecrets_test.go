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

	log := s.stderr.String()
	for _, event := range []string{"key-invalid", "bad-token", "orders are sold without leases"} {
		if !strings.Contains(log, event) {
			t.Errorf("got log %s, want %s in it", log, event)
		}
	}
	signature := ann[strings.LastIndex(ann, ".")+1:]
	for _, secret := range []string{"geheim", signature, testSecret} {
		if strings.Contains(log, secret) {
			t.Errorf("got log %s, want no %s in it", log, secret)
		}
	}
}

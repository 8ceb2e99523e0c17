package main

import (
	"fmt"
	"net/http"
	"testing"

	"example.com/shop/internal/app"
	"example.com/shop/internal/httpapi/contract"
	"example.com/shop/internal/lab"
)

type answer = contract.Answer

// send sends a request to the buyers' listener; lines are headers.
func send(method, url, body string, lines ...string) answer {
	return contract.Buyers().Send(method, url, body, lines...)
}

// buy orders one mug.
func buy(url, key string, lines ...string) answer {
	lines = append(lines, "Content-Type: application/json", "Idempotency-Key: "+key)
	return send(http.MethodPost, url+"/v1/orders", `{"lines":[{"sku":"demo-mug","quantity":1}]}`, lines...)
}

// lockServer starts a Redis-protocol server that outlives the shops of a test.
func lockServer(t *testing.T) (addr string) {
	t.Helper()
	addrs, stop, err := lab.StartEmbedded(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() })
	return addrs[0]
}

// stocked returns the flags of a MySQL with this many units of demo-mug.
func stocked(t *testing.T, dsn string, units int) (flags []string) {
	t.Helper()
	shop(t, "migrate", "--mysql", dsn).want(t, app.ExitDone, "up to date")
	shop(t, "seed", "--mysql", dsn, "--sku", "demo-mug", "--units", fmt.Sprint(units)).want(t, app.ExitDone, "demo-mug")
	return []string{"--mysql", dsn}
}

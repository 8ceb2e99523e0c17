package main

import (
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/testserver"
)

// A shop on a server of its own refuses an old schema, and sells once `shop migrate` has run, with a Redis or with
// locks of its own.
func TestServe_servers(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB} {
		t.Run(name, func(t *testing.T) {
			database := []string{"--mysql", dsn(t)}
			with := func(command string, more ...string) []string {
				return append(append([]string{command}, database...), more...)
			}
			secret, ann := withSecret(t), as(t, "ann")
			shop(t, with("serve", slices.Concat(secret, []string{"--listen", "127.0.0.1:0"})...)...).want(t, exitFailed, "shop migrate")
			shop(t, with("audit")...).want(t, exitFailed, "shop migrate")
			shop(t, with("migrate")...).want(t, exitDone, "step")
			shop(t, with("migrate")...).want(t, exitDone, "is up to date")
			shop(t, with("seed", "--sku", "demo-mug", "--units", "2")...).want(t, exitDone, "demo-mug: 2 units")

			alone := startShop(t, slices.Concat(secret, database)...)
			if told := alone.greeting(t); !strings.Contains(told, "--redis") || strings.Contains(told, "Its data") {
				t.Errorf("got %s, want it to tell that its locks are its own", told)
			}
			buy(alone.url, "key-1", ann).want(t, 201)
			both := startShop(t, slices.Concat(secret, database, []string{"--redis", "redis://" + testserver.Redis(t) + "/0"})...)
			buy(both.url, "key-1", ann).want(t, 201) // a replay
			buy(both.url, "key-2", ann).want(t, 201)
			buy(both.url, "key-3", ann).want(t, 409)
			shop(t, with("audit")...).want(t, exitDone, "1 SKU, 2 order lines, 2 units ordered of 2 supplied, 0 oversold: 0 differences")
		})
	}
}

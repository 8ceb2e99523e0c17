package app_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// reasons returns, for each strategy of a shop in teaching mode, why it is not available; empty if it is.
func reasons(t *testing.T, shop *app.Shop) map[string]string {
	t.Helper()
	got := call(t, http.MethodGet, shop.URL()+"/v1/strategies", "").want(t, http.StatusOK)
	var list struct {
		Strategies []struct {
			Name, Reason string
			Available    bool
		}
	}
	if err := json.Unmarshal([]byte(got.body), &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, s := range list.Strategies {
		if all[s.Name] = s.Reason; s.Available != (s.Reason == "") {
			t.Errorf("%s: available %v, because %q", s.Name, s.Available, s.Reason)
		}
	}
	return all
}

// buyByEach buys by each strategy that is available, of a SKU of its own, and is told why by the others.
func buyByEach(t *testing.T, shop *app.Shop, all map[string]string) {
	t.Helper()
	for name, why := range all {
		if name == "reentrant" { // which gives up after LockWait
			continue
		}
		call(t, http.MethodPost, shop.URL()+"/v1/skus", `{"sku":"for-`+name+`","units":1}`, "Content-Type: application/json").want(t, http.StatusCreated)
		got := call(t, http.MethodPost, shop.URL()+"/v1/orders", `{"lines":[{"sku":"for-`+name+`","quantity":1}]}`,
			"Content-Type: application/json", "Idempotency-Key: by-"+name, "Shop-Strategy: "+name)
		if why == "" {
			got.want(t, http.StatusCreated)
			continue
		}
		got.want(t, http.StatusBadRequest)
		if !strings.Contains(got.body, "/problems/missing-strategy") || !strings.Contains(got.body, why) {
			t.Errorf("%s: got %s, want missing-strategy and why", name, got.body)
		}
	}
}

// A strategy that needs a server which is not there is listed, with what it needs.
func TestStart_labWithoutServers(t *testing.T) {
	shop := start(t, embedded(t, 1))
	all := reasons(t, shop)
	for name, flag := range map[string]string{
		"redlock": "--redlock", "redlock-unguarded": "--redlock", "zookeeper": "--zookeeper", "mysql-lock": "--mysql", "for-update": "--mysql",
	} {
		if !strings.Contains(all[name], flag) {
			t.Errorf("%s: got the reason %q, want %s in it", name, all[name], flag)
		}
		delete(all, name)
	}
	for name, why := range all {
		if why != "" {
			t.Errorf("%s: not available: %s", name, why)
		}
	}
	buyByEach(t, shop, reasons(t, shop))
}

// With all servers, every strategy is available.
func TestStart_labWithAllServers(t *testing.T) {
	addrs, stop, err := app.StartEmbedded(5)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() })
	s := onMySQL(t, embedded(t, 1))
	s.Redlock = addrs
	s.ZooKeeper = testserver.ZooKeeper(t)
	shop := start(t, s)
	all := reasons(t, shop)
	for name, why := range all {
		if why != "" {
			t.Errorf("%s: not available: %s", name, why)
		}
	}
	buyByEach(t, shop, all)
}

// "waits until it has answered", also where that takes longer than a request may.
func TestStart_lateZooKeeper(t *testing.T) {
	t.Parallel()
	server := testserver.ZooKeeper(t)
	var first sync.Once
	answers := make(chan struct{})
	s := embedded(t, 1)
	s.LockTTL = time.Second // and a request may take as long
	s.ZooKeeper = testserver.Relay(t, server, func(client, server net.Conn) {
		first.Do(func() { time.AfterFunc(2*s.LockTTL, func() { close(answers) }) })
		<-answers
		testserver.BothWays(client, server,
			func() { _, _ = io.Copy(server, client) },
			func() { _, _ = io.Copy(client, server) })
	})
	if why := reasons(t, start(t, s))["zookeeper"]; why != "" {
		t.Errorf("not available: %s", why)
	}
}

// The source and the scripts of what a recording has.
func TestSource(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"internal/order/strategy/none.go": "s.read(", "internal/order/lane/batch.go": "package lane", "internal/lab/wronglocks.go": "PSETEX",
	} {
		if text, err := app.Source(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: got %d bytes, %v, want %q in it", file, len(text), err, want)
		}
	}
	for _, file := range []string{"", "internal/order/lane/lane_test.go", "internal/lab/../app/lab.go", "/etc/passwd"} {
		if text, err := app.Source(file); err == nil {
			t.Errorf("%s: got %d bytes, want an error", file, len(text))
		}
	}
	for command, want := range map[string]string{
		"EVALSHA release lock:{sku:mug} ATQ4Z2…": "KEEPTTL", "EVALSHA acquire redlock:sku:mug ATQ4Z2…": "redis.call",
		"EVAL compare-and-delete wrong:setex:sku:mug ATQ4Z2…": "GET", "GET lock:{sku:mug}": "", "": "",
	} {
		if got := app.Script(command); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: got %q, want %q in it", command, got, want)
		}
	}
}

package app_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// internal/tape: "records what one request of a shop in teaching mode does, step by
// step and command by command", also what outlives the request's context, as the
// release of a lock does.
func TestShop_tapes(t *testing.T) {
	s := embedded(t, 10)
	s.LabShortTTL = s.LockTTL
	shop := start(t, s)
	for _, c := range []struct {
		strategy string
		want     []string
	}{
		{"lanes", []string{"step lock-asked", "redis EVALSHA acquire lock:{sku:mug}", "step lock-held", "step read", "sql BEGIN", "sql UPDATE skus", "sql COMMIT", "step committed"}},
		{"redis", []string{"redis EVALSHA acquire lock:{sku:mug}", "step read", "sql BEGIN", "sql UPDATE skus", "sql COMMIT", "step committed", "redis EVALSHA release lock:{sku:mug}", "step released"}},
		{"get-then-del", []string{"redis SET wrong:get-then-del:sku:mug", "step read", "sql COMMIT", "redis GET", "redis DEL"}},
		{"conditional", []string{"step read", "sql BEGIN", "sql UPDATE skus SET", "sql COMMIT"}},
	} {
		recorded(t, shop.URL(), c.strategy, c.want)
	}
}

// recorded buys a mug and looks for these events, in this order.
func recorded(t *testing.T, url, strategy string, want []string) {
	t.Helper()
	w, err := call(t, http.MethodPost, url+"/v1/orders", `{"lines":[{"sku":"mug","quantity":1}]}`,
		"Content-Type: application/json", "Idempotency-Key: by-"+strategy, "Shop-Strategy: "+strategy, "Shop-Tape: "+strategy)
	wantStatus(t, w, err, http.StatusCreated)
	w, err = call(t, http.MethodGet, url+"/v1/tapes/"+strategy, "")
	wantStatus(t, w, err, http.StatusOK)
	var got struct{ Events []struct{ Kind, Text string } }
	if err := json.Unmarshal([]byte(w.body), &got); err != nil {
		t.Fatal(err)
	}
	rest := got.Events
	for _, next := range want {
		i := slices.IndexFunc(rest, func(e struct{ Kind, Text string }) bool { return strings.HasPrefix(e.Kind+" "+e.Text, next) })
		if i < 0 {
			t.Errorf("%s: want %q next, got %+v", strategy, next, got.Events)
			return
		}
		rest = rest[i+1:]
	}
}

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

// "Exit code: 0 if every SKU is correct, 1 if one is not", on real shops, and docs/load.md shows the same columns and
// verdicts.
func TestRun_judge(t *testing.T) {
	t.Parallel()
	set, err := shops.Instances{Count: 2}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	sell(t, set.URLs, "lanes", "k6")
	for _, strategy := range []string{"none", "lanes"} {
		sell(t, set.URLs, strategy, "k6-"+strategy)
	}
	code, stdout, stderr := start(t, "judge", "--target", set.URLs[0], "--sku", "k6")
	if code != exitOK || stderr.String() != "" || !stdout.Has("k6          6       6        6         0          0         6     0         0\n") || !stdout.Has("\nk6   correct\n") {
		t.Errorf("lanes: got %d, want %d and all six units sold:\n%s%s", code, exitOK, stdout.String(), stderr.String())
	}
	if !strings.HasSuffix(stdout.String(), "\n"+noLog) {
		t.Errorf("lanes: got\n%s\nwant at the end what is not known", stdout.String())
	}
	right := stdout.String()
	code, stdout, stderr = start(t, "judge", "--target", set.URLs[1], "--sku", "k6-none", "--sku", "k6-lanes")
	if code != exitBroken || !stderr.Has("the books are not correct") || !stdout.Has("k6-none  books: I1 oversold by ") {
		t.Errorf("none: got %d, want %d and the findings:\n%s%s", code, exitBroken, stdout.String(), stderr.String())
	}
	table := filepath.Join(t.TempDir(), "table.txt")
	if err := os.WriteFile(table, []byte(right+stdout.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	wantShape(t, table, "../docs/load.md", `(?m)^(SKU|k6|k6-none|k6-lanes) .*(  available  reserved  sold|  sold  findings|  verdict|  oversold|  correct)$`)

	if page, err := os.ReadFile("../docs/load.md"); err != nil || !strings.Contains(string(page), noLog) {
		t.Errorf("docs/load.md: %v, want in it\n%s", err, noLog)
	}

	code, stdout, stderr = start(t, "judge", "--target", set.URLs[0], "--sku", "k6-lanes", "--sku", "unheard-of")
	if code != exitBroken || stdout.String() != "" || !stderr.Has("sku=unheard-of: not found: the shop has no such SKU") {
		t.Errorf("no such SKU: got %d, want %d and no verdict:\n%s%s", code, exitBroken, stdout.String(), stderr.String())
	}
}

// sell lets 30 buyers buy from 6 units.
func sell(t *testing.T, urls []string, strategy, sku string) {
	t.Helper()
	conns := shopclient.NewConnections(1, time.Minute)
	defer conns.CloseIdleConnections()
	if err := shopclient.New(urls[0], conns).Create(t.Context(), sku, 6); err != nil {
		t.Fatal(err)
	}
	race := crowd.Race{
		Shops: urls, Strategy: strategy, SKUs: []string{sku}, Buyers: 30, Think: 10 * time.Millisecond,
		Timeout: time.Minute, RequestTimeout: time.Minute, Patience: crowd.Patience{Tries: 10, MaxPause: time.Second},
	}
	if _, err := race.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// "The operator's listener of a shop, with its token in $SHOP_OPERATOR_TOKEN."
func TestRun_judge_operator(t *testing.T) {
	t.Parallel()
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer secret" {
			t.Errorf("Authorization: got %q, want the token", got)
		}
		fmt.Fprint(w, `{"ok":false,"skus":[{"sku":"mug","supplied":5,"available":4,"reserved":1,"orders":1,"ordered_units":1}],`+
			`"differences":[{"invariant":"I5","sku":"mug","order_id":"o-1","detail":"no movement"}]}`)
	}))
	t.Cleanup(listener.Close)
	getenv := func(name string) string { return map[string]string{"SHOP_OPERATOR_TOKEN": "secret"}[name] }
	var stdout, stderr testserver.LogBuffer
	code := run(t.Context(), []string{"judge", "--target", listener.URL, "--sku", "mug"}, getenv, &stdout, &stderr)
	if code != exitBroken || !stdout.Has("\nmug  inconsistent\n\nmug  books: I5 no movement (order o-1)\n") {
		t.Errorf("got %d, want %d and the finding:\n%s%s", code, exitBroken, stdout.String(), stderr.String())
	}
}

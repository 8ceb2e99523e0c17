package main

import (
	"database/sql"
	"encoding/json"
	"regexp"
	"strconv"
	"testing"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// "The audit streams the rows, so its memory does not grow with the number of orders", nor with the number of
// differences: here are more of these than orders. "The JSON lists the first 1,000 SKUs and differences".
func TestAudit_size(t *testing.T) {
	t.Parallel()
	const orders, limit = 200_000, 20 // limit is the heap in MB, by the garbage collector's trace
	data := t.TempDir()
	shop(t, "migrate", "--data", data).want(t, app.ExitDone)
	db, err := sql.Open("sqlite", app.DatabaseFile(data))
	testserver.Must(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO orders SELECT 'order-' || i, 'ann', 'key-' || i, 'lost', 1, 'EUR', '2026-01-01', '2026-01-01', NULL FROM n`, orders)
	testserver.Must(t, err)

	r := shopWith(t, []string{"GODEBUG=gctrace=1"}, "audit", "--data", data, "--json")
	r.want(t, app.ExitFailed)
	var report struct {
		Differences []struct{}
		Truncated   bool
	}
	testserver.Must(t, json.Unmarshal([]byte(r.stdout), &report))
	if len(report.Differences) != 1_000 || !report.Truncated {
		t.Errorf("got %d differences, truncated %v, want the first 1,000 of them", len(report.Differences), report.Truncated)
	}
	collections := regexp.MustCompile(` (\d+)->\d+->\d+ MB, `).FindAllStringSubmatch(r.stderr, -1)
	if len(collections) == 0 {
		t.Errorf("got %s, want the trace of the garbage collector", r.stderr)
	}
	for _, c := range collections {
		if heap, err := strconv.Atoi(c[1]); err != nil || heap > limit {
			t.Errorf("got a heap of %s MB, %v, want at most %d", c[1], err, limit)
		}
	}
}

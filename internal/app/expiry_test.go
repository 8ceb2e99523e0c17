package app_test

import (
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/testserver"
)

// "If a job fails on an instance, the instance leaves the job to others": orders expire although the instance reaches
// Redis. "Each job reports its work in the log and in the metrics", even where it fails.
func TestShop_expires_databaseLost(t *testing.T) {
	t.Parallel()
	well, lost := embedded(t, 5), embedded(t, 1)
	lost.Redis = well.Redis // and a database of its own, to lose alone
	lost.SweepEvery, well.SweepEvery, well.PayWithin = 10*time.Millisecond, 10*time.Millisecond, time.Second
	first, second := &testserver.LogBuffer{}, &testserver.LogBuffer{}
	lost.Log, well.Log = slog.New(slog.NewTextHandler(first, nil)), slog.New(slog.NewTextHandler(second, nil))
	const runs = `msg="job runs here" job=expiry`
	broken := start(t, lost)
	testserver.Until(t, "the first instance has the job", patience, func() bool { return first.Has(runs) })
	shop := start(t, well)
	change(t, lost, "ALTER TABLE orders RENAME TO gone") // the job fails from now on
	testserver.Until(t, "another instance has the job", patience, func() bool { return second.Has(runs) })
	var order struct{ ID, Status string }
	buy(t, shop, "key-1").Want(t, http.StatusCreated).Decode(t, &order)
	testserver.Until(t, "the order has expired", 10*time.Second, func() bool {
		call(t, http.MethodGet, shop.URL()+"/v1/orders/"+order.ID, "").Want(t, http.StatusOK).Decode(t, &order)
		return order.Status == "expired"
	})
	call(t, http.MethodPost, shop.URL()+"/v1/orders/"+order.ID+"/pay", "").Want(t, http.StatusConflict)
	if w := call(t, http.MethodGet, shop.URL()+"/v1/skus/mug", ""); !strings.Contains(w.Body, `"available":5,"reserved":0`) {
		t.Errorf("got %s, want all 5 available", w.Body)
	}
	if !first.Has(`level=WARN msg="job fails here" job=expiry errors=1`) {
		t.Errorf("got log %s, want the run that failed", first)
	}
	failed := regexp.MustCompile(`shop_job_runs_total\{job="expiry",result="failed"\} [1-9]`)
	if metrics := scrape(t, broken); !failed.MatchString(metrics) {
		t.Errorf("got metrics\n%s\nwant a line like %s", metrics, failed)
	}
}

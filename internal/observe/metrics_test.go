package observe_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/observe"
)

// Each result of a wait, renewal and run has its own count, and losses too. What a shop counts by them is tested in
// package app.
func TestMetrics(t *testing.T) {
	t.Parallel()
	m := observe.NewMetrics("v1", "c0ffee")
	scrape := func() string {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		return w.Body.String()
	}
	o := m.Lock("redis")
	for _, err := range []error{nil, lock.ErrTimeout, lock.ErrQueueFull, lock.ErrNoAnswer, context.DeadlineExceeded, lock.ErrClosed} {
		o.Waited("sku:mug", 2*time.Millisecond, err)
	}
	o.Lost("sku:mug", lock.ErrLost)
	o.Lost("whatever", lock.ErrLost)
	job := m.Job("expiry")
	job.Ran(3, nil)
	job.Ran(1, errors.New("broken"))
	job.Lags(1500 * time.Millisecond)
	m.Batch(3)
	m.Batch(100)
	m.Leases(nil)
	m.Leases(lock.ErrTimeout)
	text := scrape()
	lines := []string{
		`shop_build_info{commit="c0ffee",version="v1"} 1`,
		`shop_lock_wait_seconds_bucket{kind="sku",lock="redis",le="0.001"} 0`,
		`shop_lock_wait_seconds_bucket{kind="sku",lock="redis",le="0.0025"} 6`,
		`shop_lock_lost_total{kind="sku",lock="redis"} 1`,
		`shop_lock_lost_total{kind="other",lock="redis"} 1`,
		`shop_job_runs_total{job="expiry",result="ok"} 1`,
		`shop_job_runs_total{job="expiry",result="failed"} 1`,
		`shop_job_items_total{job="expiry"} 4`,
		`shop_job_lag_seconds{job="expiry"} 1.5`,
		`shop_batch_orders_bucket{le="4"} 1`,
		`shop_batch_orders_count 2`,
		`shop_batch_orders_sum 103`,
		`shop_unleased_batches_total 1`,
	}
	for _, r := range []string{"acquired", "timeout", "queue-full", "no-answer", "gave-up", "refused"} {
		lines = append(lines, `shop_lock_acquisitions_total{kind="sku",lock="redis",result="`+r+`"} 1`)
	}
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("want the line %q in\n%s", line, text)
		}
	}
	last := regexp.MustCompile(`shop_job_last_success_timestamp_seconds{job="expiry"} (\S+)`).FindStringSubmatch(text)
	if at, err := strconv.ParseFloat(last[1], 64); err != nil || time.Since(time.Unix(int64(at), 0)).Abs() > time.Minute {
		t.Errorf("got last success at %v, %v, want now", at, err)
	}
	if job.Left(); strings.Contains(scrape(), "shop_job_lag_seconds{") {
		t.Error("the lag of a job that runs elsewhere is still there")
	}
}

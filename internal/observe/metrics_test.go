package observe_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/observe"
)

// scrape returns what Prometheus would read.
func scrape(t *testing.T, m *observe.Metrics) (text string, families map[string]*dto.MetricFamily) {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("got status %d %s", w.Code, w.Body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(w.Body.String()))
	if err != nil {
		t.Fatal(err)
	}
	return w.Body.String(), families
}

// wantLines fails unless the scrape has each line.
func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("want the line %q in\n%s", line, text)
		}
	}
}

// "Labels have few values, all of them this program's": a client's methods and paths are not among them.
func TestMetrics_Request(t *testing.T) {
	t.Parallel()
	m := observe.NewMetrics(observe.Build{Version: "v1", Commit: "c0ffee"})
	m.Request(http.MethodGet, "/v1/skus/:sku", http.StatusOK, 2*time.Millisecond)
	m.Request("BREW", "", http.StatusNotFound, time.Millisecond)
	m.Request("MILK", "", http.StatusNotFound, time.Millisecond)
	m.Order("place", "sold-out")
	text, _ := scrape(t, m)
	wantLines(t, text,
		`shop_http_requests_total{method="GET",route="/v1/skus/:sku",status="200"} 1`,
		`shop_http_requests_total{method="other",route="none",status="404"} 2`,
		`shop_http_request_duration_seconds_bucket{method="GET",route="/v1/skus/:sku",le="0.001"} 0`,
		`shop_http_request_duration_seconds_bucket{method="GET",route="/v1/skus/:sku",le="0.0025"} 1`,
		`shop_orders_total{action="place",outcome="sold-out"} 1`,
		`shop_build_info{commit="c0ffee",version="v1"} 1`,
	)
}

// Each result of a wait, renewal and run has its own count, and losses too.
func TestMetrics_results(t *testing.T) {
	t.Parallel()
	m := observe.NewMetrics(observe.Build{})
	o := m.Lock("redis")
	for _, err := range []error{nil, lock.ErrTimeout, lock.ErrQueueFull, lock.ErrNoAnswer, context.DeadlineExceeded, lock.ErrClosed} {
		o.Waited("sku:mug", time.Millisecond, err)
	}
	o.Lost("sku:mug", lock.ErrLost)
	o.Lost("whatever", lock.ErrLost)
	job := m.Job("expiry")
	job.Ran(3, nil)
	job.Ran(1, errors.New("broken"))
	m.Batch(3)
	m.Batch(100)
	m.Leases(nil)
	m.Leases(lock.ErrTimeout)
	text, families := scrape(t, m)
	for _, r := range []string{"acquired", "timeout", "queue-full", "no-answer", "gave-up", "refused"} {
		wantLines(t, text, `shop_lock_acquisitions_total{kind="sku",lock="redis",result="`+r+`"} 1`)
	}
	wantLines(t, text,
		`shop_lock_lost_total{kind="sku",lock="redis"} 1`,
		`shop_lock_lost_total{kind="other",lock="redis"} 1`,
		`shop_job_runs_total{job="expiry",result="ok"} 1`,
		`shop_job_runs_total{job="expiry",result="failed"} 1`,
		`shop_job_items_total{job="expiry"} 4`,
		`shop_batch_orders_bucket{le="4"} 1`,
		`shop_batch_orders_count 2`,
		`shop_batch_orders_sum 103`,
		`shop_unleased_batches_total 1`,
	)
	last := families["shop_job_last_success_timestamp_seconds"].GetMetric()[0].GetGauge().GetValue()
	if off := time.Since(time.Unix(int64(last), 0)).Abs(); off > time.Minute {
		t.Errorf("got last success %v ago, want now", off)
	}
	job.Lags(1500 * time.Millisecond)
	text, _ = scrape(t, m)
	wantLines(t, text, `shop_job_lag_seconds{job="expiry"} 1.5`)
	job.Left()
	text, _ = scrape(t, m)
	if strings.Contains(text, "shop_job_lag_seconds{") {
		t.Error("the lag of a job that runs elsewhere is still there")
	}
}

// "Several shops in one process do not add to each other's numbers."
func TestMetrics_separate(t *testing.T) {
	t.Parallel()
	one, two := observe.NewMetrics(observe.Build{}), observe.NewMetrics(observe.Build{})
	one.Order("place", "placed")
	if text, _ := scrape(t, two); strings.Contains(text, "shop_orders_total{") {
		t.Errorf("got another shop's order in\n%s", text)
	}
}

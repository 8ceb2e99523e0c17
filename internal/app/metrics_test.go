package app_test

import (
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// patience is the time limit for a step that takes milliseconds, on a busy machine.
const patience = 30 * time.Second

// scrape asks as Prometheus does, on the operator's listener.
func scrape(t *testing.T, shop *app.Shop) string {
	t.Helper()
	return operate(shop, http.MethodGet, "/metrics", "").Want(t, http.StatusOK).Body
}

// The metrics show a small run through the real API. "Several shops in one process do not add to each other's
// numbers": shops of other tests trade meanwhile. "The values of labels are few and come from this program": a client's
// methods and paths are not among them.
func TestShop_Metrics(t *testing.T) {
	t.Parallel()
	s := embedded(t, 2)
	s.PayWithin, s.SweepEvery = 5*time.Second, 10*time.Millisecond
	log := &testserver.LogBuffer{}
	s.Log = slog.New(slog.NewTextHandler(log, nil))
	shop := start(t, s)
	for _, key := range []string{"key-1", "key-2", "key-1"} {
		buy(t, shop, key).Want(t, http.StatusCreated)
	}
	call(t, http.MethodGet, shop.URL()+"/v1/skus/unheard-of", "").Want(t, http.StatusNotFound)
	call(t, http.MethodGet, shop.URL()+"/made/up", "").Want(t, http.StatusNotFound)
	call(t, "BREW", shop.URL()+"/coffee", "").Want(t, http.StatusNotFound)
	call(t, "MILK", shop.URL()+"/tea", "").Want(t, http.StatusNotFound)
	for _, line := range []string{
		`shop_job_items_total{job="expiry"} 2`,
		`shop_lock_acquisitions_total{kind="job",lock="redis",result="acquired"} 4`,
	} {
		testserver.Until(t, line, patience, func() bool { return strings.Contains(scrape(t, shop), "\n"+line+"\n") })
	}

	text := scrape(t, shop)
	for _, line := range []string{
		`# TYPE shop_orders_total counter`,
		`shop_orders_total{action="place",outcome="placed"} 2`,
		`shop_orders_total{action="place",outcome="replayed"} 1`,
		`shop_http_requests_total{method="POST",route="/v1/orders",status="201"} 3`,
		`shop_http_requests_total{method="GET",route="/v1/skus/:sku",status="404"} 1`,
		`shop_http_requests_total{method="GET",route="none",status="404"} 1`,
		`shop_http_requests_total{method="other",route="none",status="404"} 2`,
		`# TYPE shop_http_request_duration_seconds histogram`,
		`shop_http_request_duration_seconds_count{method="POST",route="/v1/orders"} 3`,
		`shop_lock_acquisitions_total{kind="sku",lock="redis",result="acquired"} 2`,
		`shop_lock_wait_seconds_count{kind="sku",lock="redis"} 2`,
		`shop_lock_hold_seconds_count{kind="sku",lock="redis"} 2`,
		`shop_batch_orders_sum 2`,
		`shop_unleased_batches_total 0`,
		`shop_lock_lost_total{kind="sku",lock="redis"} 0`,
		`shop_queue_length{queue="redis"} 0`,
		`shop_queue_length{queue="lanes"} 0`,
		`shop_job_runs_total{job="expiry",result="failed"} 0`,
		`# TYPE shop_job_last_success_timestamp_seconds gauge`,
		`go_sql_max_open_connections{db_name="shop"} 4`,
		`# TYPE shop_redis_pool_connections gauge`,
		`# TYPE shop_redis_pool_timeouts_total counter`,
		`# TYPE shop_build_info gauge`,
		`# TYPE go_goroutines gauge`,
		`# TYPE process_start_time_seconds gauge`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("want the line %s in\n%s", line, text)
		}
	}
	testserver.Until(t, "the log has what the job did", patience, func() bool { return log.Has(`msg="job ran" job=expiry items=`) })
	page := readFile(t, "../../docs/operations.md")
	for _, name := range regexp.MustCompile("`((?:shop|go)_[a-z_]+)").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(text, "\n# TYPE "+name[1]+" ") {
			t.Errorf("docs/operations.md names %s, which is not there", name[1])
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	testserver.Must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

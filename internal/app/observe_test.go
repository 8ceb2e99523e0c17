package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/httpapi/contract"
	"example.com/shop/internal/testserver"
)

const (
	prometheusFolder = "../../deploy/prometheus"
	dashboardFile    = "../../deploy/grafana/shop.json"
)

// program returns the path of a program. If the program is missing, it skips the test, or fails it with CI=true.
func program(t *testing.T, name string) (path string) {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("the test needs Prometheus: %v; with CI=true, a missing program is a failure", err)
	case err != nil:
		t.Skipf("the test needs Prometheus: %v", err)
	}
	return path
}

// promtool runs promtool, and fails the test if promtool fails.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program(t, "promtool"), args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	testserver.Must(t, err)
	return string(text)
}

// Each alert has a test in which it fires, a test in which it does not fire, and a line in the runbook.
func TestAlerts(t *testing.T) {
	t.Parallel()
	alerts := regexp.MustCompile(`- alert: (\w+)\n`).FindAllStringSubmatch(readFile(t, prometheusFolder+"/alerts.yml"), -1)
	if len(alerts) == 0 {
		t.Error("got no alert")
	}
	tests, runbook := readFile(t, prometheusFolder+"/alerts_test.yml"), readFile(t, "../../docs/operations.md")
	for _, alert := range alerts {
		name := alert[1]
		if !strings.Contains(runbook, "\n| `"+name+"` | ") {
			t.Errorf("docs/operations.md lacks %s", name)
		}
		if !strings.Contains(tests, "alertname: "+name+"}\n") {
			t.Errorf("alerts_test.yml has no test in which %s does not fire", name)
		}
		if !strings.Contains(tests, "alertname: "+name+"\n        exp_alerts:\n") {
			t.Errorf("alerts_test.yml has no test in which %s fires", name)
		}
	}
	promtool(t, "check", "config", "--syntax-only", prometheusFolder+"/prometheus.yml")
	promtool(t, "check", "rules", "--lint-fatal", prometheusFolder+"/alerts.yml")
	promtool(t, "test", "rules", prometheusFolder+"/alerts_test.yml")
}

// A Prometheus with the project's configuration scrapes the shop. Then no panel of the dashboard is empty.
func TestDashboard(t *testing.T) {
	t.Parallel()
	program(t, "prometheus")
	s := embedded(t, 1_000_000)
	s.PayWithin, s.SweepEvery, s.PaymentsToken = 10*time.Second, 100*time.Millisecond, secret(t, paymentsToken)
	shop := start(t, s)
	prometheus := startPrometheus(t, shop)
	operate(shop, http.MethodPost, "/v1/skus", `{"sku":"rare","units":1,"price":{"minor":100,"currency":"EUR"}}`).Want(t, http.StatusCreated)

	empty, rounds := panels(t), 0
	defer func() {
		for name, expr := range empty {
			t.Errorf("%s is empty: %s", name, expr)
		}
	}()
	testserver.Until(t, "no panel is empty", patience, func() bool {
		rounds++
		trade(t, shop, rounds)
		for name, expr := range empty {
			if shows(t, prometheus, expr) {
				delete(empty, name)
			}
		}
		return len(empty) == 0
	})
}

// trade sends one request of each kind that the dashboard shows. It leaves one order to expire.
func trade(t *testing.T, shop *app.Shop, round int) {
	t.Helper()
	key := func(name string) string { return fmt.Sprintf("%s-%d", name, round) }
	placed := func(name string, lines ...string) (url string) {
		var order struct{ ID string }
		buy(t, shop, key(name), lines...).Want(t, http.StatusCreated).Decode(t, &order)
		return shop.URL() + "/v1/orders/" + order.ID
	}
	placed("expires")
	placed("expires") // a replay
	call(t, http.MethodPost, placed("paid")+"/pay", "").Want(t, http.StatusOK)
	cancelled := placed("cancelled")
	call(t, http.MethodPost, cancelled+"/cancel", "").Want(t, http.StatusOK)
	call(t, http.MethodPost, cancelled+"/pay", "").Want(t, http.StatusConflict)
	contract.Operator().Send(http.MethodPost, "http://"+shop.OperatorAddr()+strings.TrimPrefix(cancelled, shop.URL())+"/pay",
		`{"payment_id":"`+key("pi")+`","amount":{"minor":1250,"currency":"EUR"}}`, "Authorization: Bearer "+paymentsToken,
		asJSON).Want(t, http.StatusConflict)
	call(t, http.MethodPost, shop.URL()+"/v1/orders", `{"lines":[{"sku":"rare","quantity":2}]}`,
		"Content-Type: application/json", "Idempotency-Key: "+key("refused")).Want(t, http.StatusConflict)
}

// panels returns the dashboard's queries. A key is the title of a panel and the ID of its query.
func panels(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Type, Title string
			Targets     []struct{ RefID, Expr string }
		}
	}
	testserver.Must(t, json.Unmarshal([]byte(readFile(t, dashboardFile)), &dashboard))
	exprs := map[string]string{}
	for _, panel := range dashboard.Panels {
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("%s: got no query", panel.Title)
		}
		for _, target := range panel.Targets {
			exprs[panel.Title+" "+target.RefID] = strings.ReplaceAll(target.Expr, "$__rate_interval", "15s")
		}
	}
	if len(exprs) == 0 {
		t.Error("got no panel")
	}
	return exprs
}

// startPrometheus starts a Prometheus with deploy/prometheus/prometheus.yml, changed so that it scrapes this shop, every
// 500 ms, and returns its URL. Prometheus ends with the test.
func startPrometheus(t *testing.T, shop *app.Shop) (url string) {
	t.Helper()
	folder := t.TempDir()
	token, config := filepath.Join(folder, "operator.token"), filepath.Join(folder, "prometheus.yml")
	text := readFile(t, prometheusFolder+"/prometheus.yml")
	for _, change := range [][2]string{
		{`credentials_file: .*`, "credentials_file: " + token},
		{`targets: .*`, "targets: ['" + shop.OperatorAddr() + "']"},
		{`(scrape|evaluation)_interval: \S+`, "${1}_interval: 500ms"},
	} {
		text = regexp.MustCompile(change[0]).ReplaceAllString(text, change[1])
	}
	for path, content := range map[string]string{
		config: text, token: operatorToken, filepath.Join(folder, "alerts.yml"): readFile(t, prometheusFolder+"/alerts.yml"),
	} {
		testserver.Must(t, os.WriteFile(path, []byte(content), 0o600))
	}
	log := &testserver.LogBuffer{}
	cmd := exec.CommandContext(t.Context(), program(t, "prometheus"), "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address=127.0.0.1:0")
	cmd.Stdout, cmd.Stderr = log, log
	testserver.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the end of the test's context has killed Prometheus
	listens := regexp.MustCompile(`msg="Listening on".* address=(\S+)`)
	testserver.Until(t, "Prometheus listens", patience, func() bool { return listens.MatchString(log.String()) })
	return "http://" + listens.FindStringSubmatch(log.String())[1]
}

// shows reports whether an expression has a value to draw. NaN, the result of 0/0, is not drawn.
func shows(t *testing.T, prometheus, expr string) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program(t, "promtool"), "query", "instant", prometheus, expr).CombinedOutput()
	return err == nil && regexp.MustCompile(`=> [^N]`).Match(out)
}

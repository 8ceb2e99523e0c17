package contract_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/shop/internal/order/orderhttp/contract"
)

// recorded is a test that notes its failures instead of failing.
type recorded struct {
	testing.TB
	failures []string
}

func (r *recorded) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// "Transport fails the test on each answer that is off the contract", and hands
// the answer on as it came.
func TestTransport(t *testing.T) {
	t.Parallel()
	const good = `{"status":"ok"}`
	for body, failures := range map[string]int{good: 0, `{"status":"fine"}`: 1} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("X-Request-Id", "a1")
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = io.WriteString(w, body)
		}))
		defer server.Close()
		note := &recorded{TB: t}
		client := &http.Client{Transport: contract.Transport(note, contract.Buyers, http.DefaultTransport)}
		answer, err := client.Get(server.URL + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		if err != nil || string(got) != body {
			t.Errorf("got %q, %v, want %q", got, err, body)
		}
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
		if len(note.failures) != failures {
			t.Errorf("%s: got failures %v, want %d", body, note.failures, failures)
		}
		if failures > 0 && !strings.Contains(note.failures[0], "GET /healthz, status 200") {
			t.Errorf("got %q, want it to name the call", note.failures[0])
		}
		client.CloseIdleConnections()
	}
}

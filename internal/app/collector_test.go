package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// spanBook is a collector of traces: OTLP over HTTP, in protobuf.
type spanBook struct {
	mu      sync.Mutex
	spans   []*traces.Span
	service []string // who sent them
}

// startCollector starts one and has the environment name it to the shop.
func startCollector(t *testing.T) *spanBook {
	t.Helper()
	b := &spanBook{}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	return b
}

func (b *spanBook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	var sent collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(text, &sent)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(r.URL.Path, err), http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, resource := range sent.ResourceSpans {
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				b.service = append(b.service, a.Value.GetStringValue())
			}
		}
		for _, scope := range resource.ScopeSpans {
			b.spans = append(b.spans, scope.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// all returns what has come so far.
func (b *spanBook) all() []*traces.Span {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spans
}

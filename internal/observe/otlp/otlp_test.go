package otlp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"example.com/shop/internal/observe"
	"example.com/shop/internal/observe/otlp"
)

// "Tracing is off, and costs nothing, unless one of OpenTelemetry's standard variables asks for it." Not parallel: the
// environment is the process's.
func TestExporter(t *testing.T) {
	const endpoint = "http://127.0.0.1:4318"
	for name, c := range map[string]struct {
		variables map[string]string
		on        bool
		names     string // in an error
	}{
		"nothing":                 {nil, false, ""},
		"endpoint":                {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, true, ""},
		"endpoint of traces":      {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint}, true, ""},
		"another endpoint":        {map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": endpoint}, false, ""},
		"exporter":                {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, false, "OTEL_EXPORTER_OTLP_ENDPOINT: want"},
		"none, whatever the rest": {map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, false, ""},
		"disabled":                {map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, false, ""},
		"protocol of traces": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
			"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, true, ""},
		"another protocol": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
			"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, "OTEL_EXPORTER_OTLP_PROTOCOL is grpc: want http/protobuf"},
		"unknown exporter": {map[string]string{"OTEL_TRACES_EXPORTER": "pigeon"}, false, "OTEL_TRACES_EXPORTER"},
		"endpoint without scheme": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}, false,
			"OTEL_EXPORTER_OTLP_ENDPOINT: want a URL with its scheme, such as http://localhost:4318"},
		"address without scheme": {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "127.0.0.1:4318"}, false,
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: want"},
		"endpoint that is not used": {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint,
			"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost"}, true, ""},
		"attributes without a value": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
			"OTEL_RESOURCE_ATTRIBUTES": "a"}, false, "OTEL_RESOURCE_ATTRIBUTES"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.variables {
				t.Setenv(variable, value)
			}
			exporter, err := otlp.Exporter(t.Context())
			if exporter != nil && err == nil {
				var got *observe.Traces
				if got, err = observe.StartTraces(t.Context(), exporter, "v1"); err == nil {
					got.Close()
				}
			}
			if (err != nil) != (c.names != "") || err != nil && !strings.Contains(err.Error(), c.names) {
				t.Fatalf("got error %v, want one that names %q", err, c.names)
			}
			if on := exporter != nil && err == nil; on != c.on {
				t.Errorf("got traces %v, want %v", on, c.on)
			}
		})
	}
}

// Package otlp "sends traces as OTLP over HTTP, in protobuf."
func TestExporter_sends(t *testing.T) {
	sent := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sent <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type")
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	exporter, err := otlp.Exporter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	span := tracetest.SpanStub{Name: "POST /v1/orders"}
	if err := exporter.ExportSpans(t.Context(), []trace.ReadOnlySpan{span.Snapshot()}); err != nil {
		t.Error(err)
	}
	if got, want := <-sent, "POST /v1/traces application/x-protobuf"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

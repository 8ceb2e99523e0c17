// Package otlp sends traces to the collector that OpenTelemetry's standard variables name, by OTLP over HTTP. It is not
// part of package observe, because only programs that serve buyers need its many dependencies.
package otlp

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Exporter returns the exporter that the environment asks for; nil for none. It does not wait for the collector.
func Exporter(ctx context.Context) (trace.SpanExporter, error) {
	variable := "" // with the collector's address
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		if os.Getenv(name) != "" {
			variable = name // the second overrides the first
		}
	}
	kind := os.Getenv("OTEL_TRACES_EXPORTER")
	switch {
	case strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true"), kind == "none", kind == "" && variable == "":
		return nil, nil
	case kind != "" && kind != "otlp":
		return nil, fmt.Errorf("traces: OTEL_TRACES_EXPORTER=%s: want otlp or none", kind)
	}
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	if protocol != "http/protobuf" {
		return nil, fmt.Errorf("traces: OTEL_EXPORTER_OTLP_TRACES_PROTOCOL or OTEL_EXPORTER_OTLP_PROTOCOL is %s: want http/protobuf", protocol)
	}
	// otlptracehttp would read localhost:4318 as a scheme and a path, and only log that nothing arrives.
	u, err := url.Parse(os.Getenv(variable))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("traces: %s: want a URL with its scheme, such as http://localhost:4318",
			cmp.Or(variable, "OTEL_EXPORTER_OTLP_ENDPOINT"))
	}
	return otlptracehttp.New(ctx)
}

package tracing

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Traces are those of one shop. It may be used by many goroutines at once.
type Traces struct {
	provider *trace.TracerProvider
}

// closeBound is how long the last spans may take to be sent.
const closeBound = 5 * time.Second

// Start returns nil if the environment does not ask for traces. The version is
// that of the program. A variable that cannot be used is an error; a collector
// that does not answer is none.
func Start(ctx context.Context, version string) (*Traces, error) {
	if !wanted() {
		return nil, nil
	}
	if err := checkEndpoint(); err != nil {
		return nil, err
	}
	who, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "shop"), attribute.String("service.version", version)),
		resource.WithFromEnv(), // last: it wins
	)
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w; check OTEL_TRACES_EXPORTER (otlp, console, none) and OTEL_EXPORTER_OTLP_PROTOCOL", err)
	}
	return &Traces{provider: trace.NewTracerProvider(
		trace.WithResource(who),
		trace.WithSpanProcessor(ofRequests{trace.NewBatchSpanProcessor(exporter)}),
	)}, nil
}

// Close sends what is left, for a few seconds at most. Close what makes spans
// first.
func (t *Traces) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeBound)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

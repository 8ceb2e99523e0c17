package tracing

import (
	"go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// ofRequests drops the spans of calls to a server that belong to no request: the
// renewal or return of a lease, a job that looks for work. Each would be a trace
// of its own that explains nothing.
type ofRequests struct{ trace.SpanProcessor }

// OnEnd implements trace.SpanProcessor.
func (p ofRequests) OnEnd(s trace.ReadOnlySpan) {
	if s.SpanKind() == oteltrace.SpanKindClient && !s.Parent().IsValid() {
		return
	}
	p.SpanProcessor.OnEnd(s)
}

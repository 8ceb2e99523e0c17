package logs

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// Names of what is added to a line.
const (
	requestID = "request_id"
	traceID   = "trace_id"
	spanID    = "span_id"
)

// handler adds to each record what its context knows.
type handler struct{ slog.Handler }

// NewHandler returns a handler that adds request and trace to what next logs. One
// that does so already is returned as it is.
func NewHandler(next slog.Handler) slog.Handler {
	if _, done := next.(handler); done {
		return next
	}
	return handler{next}
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if id := Request(ctx); id != "" {
		r.AddAttrs(slog.String(requestID, id))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String(traceID, span.TraceID().String()), slog.String(spanID, span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name)}
}

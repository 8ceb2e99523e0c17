package observe

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
)

type requestKey struct{}

// WithRequest returns a context of the request with this id.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// Request returns the id of the request that ctx belongs to; empty if it belongs to none.
func Request(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// Took returns the attribute took_ms for a line of the log: a duration in milliseconds.
func Took(d time.Duration) slog.Attr {
	return slog.Float64("took_ms", float64(d.Microseconds())/1000)
}

type handler struct{ slog.Handler }

// NewHandler returns a handler that adds the ids of the request and the trace to the records that next logs.
func NewHandler(next slog.Handler) slog.Handler { return handler{next} }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if id := Request(ctx); id != "" {
		r.AddAttrs(slog.String("request_id", id))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }

// Outage logs a repeated error at the first, second, fourth, eighth time, and so on, with the number of errors so far.
// It also logs the first success after an error. It may be used by many goroutines at once.
type Outage struct {
	Log     *slog.Logger
	Message string

	mu     sync.Mutex
	errors int
}

// Note records the outcome of an attempt; nil means success.
func (o *Outage) Note(ctx context.Context, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil:
		o.errors++
		if o.errors&(o.errors-1) == 0 { // a power of two
			// The text is cut, because it may join the errors of a hundred orders.
			o.Log.WarnContext(ctx, o.Message, "errors", o.errors, "error", fmt.Sprintf("%.1000s", err.Error()))
		}
	case o.errors > 0:
		o.Log.InfoContext(ctx, o.Message+": over", "errors", o.errors)
		o.errors = 0
	}
}

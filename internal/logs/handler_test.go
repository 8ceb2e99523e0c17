package logs_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/logs"
)

// "A line that is logged with the context of a request has its request_id. One
// that is logged inside a trace also has trace_id and span_id."
func TestHandler(t *testing.T) {
	t.Parallel()
	request := logs.WithRequest(t.Context(), "r-1")
	traced := trace.ContextWithSpanContext(request, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
	}))
	ids := " trace_id=01000000000000000000000000000000 span_id=0200000000000000"
	for name, c := range map[string]struct {
		ctx  context.Context
		with func(*slog.Logger) *slog.Logger
		want string
	}{
		"no request":      {t.Context(), nil, "level=INFO msg=m k=v\n"},
		"request":         {request, nil, "level=INFO msg=m k=v request_id=r-1\n"},
		"trace":           {traced, nil, "level=INFO msg=m k=v request_id=r-1" + ids + "\n"},
		"with attributes": {request, func(l *slog.Logger) *slog.Logger { return l.With("a", 1) }, "level=INFO msg=m a=1 k=v request_id=r-1\n"},
		"with group":      {request, func(l *slog.Logger) *slog.Logger { return l.WithGroup("g") }, "level=INFO msg=m g.k=v g.request_id=r-1\n"},
	} {
		var text bytes.Buffer
		log := slog.New(logs.NewHandler(logs.NewHandler(slog.NewTextHandler(&text, nil))))
		if c.with != nil {
			log = c.with(log)
		}
		log.InfoContext(c.ctx, "m", "k", "v")
		if _, got, _ := strings.Cut(text.String(), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// "A line below the handler's level costs nothing."
func TestHandler_belowLevel(t *testing.T) {
	ctx := logs.WithRequest(t.Context(), "r-1")
	log := slog.New(logs.NewHandler(slog.NewTextHandler(&bytes.Buffer{}, nil)))
	if n := testing.AllocsPerRun(100, func() { log.LogAttrs(ctx, slog.LevelDebug, "m") }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

// "took_ms, in milliseconds".
func TestTook(t *testing.T) {
	t.Parallel()
	if got, want := logs.Took(1234567*time.Nanosecond).String(), "took_ms=1.234"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

package observe_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/observe"
)

// "A line that is logged with the context of a request has the request_id; a line inside a trace also has trace_id and
// span_id. A line below the handler's level costs nothing."
func TestHandler(t *testing.T) {
	request := observe.WithRequest(t.Context(), "r-1")
	traced := trace.ContextWithSpanContext(request, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
	}))
	ids := " trace_id=01000000000000000000000000000000 span_id=0200000000000000"
	same := func(l *slog.Logger) *slog.Logger { return l }
	for name, c := range map[string]struct {
		ctx  context.Context
		with func(*slog.Logger) *slog.Logger
		want string
	}{
		"no request": {t.Context(), same, "level=INFO msg=m took_ms=1.234\n"},
		"request":    {request, same, "level=INFO msg=m took_ms=1.234 request_id=r-1\n"},
		"trace":      {traced, same, "level=INFO msg=m took_ms=1.234 request_id=r-1" + ids + "\n"},
		"with attributes": {request, func(l *slog.Logger) *slog.Logger { return l.With("a", 1) },
			"level=INFO msg=m a=1 took_ms=1.234 request_id=r-1\n"},
		"with group": {request, func(l *slog.Logger) *slog.Logger { return l.WithGroup("g") },
			"level=INFO msg=m g.took_ms=1.234 g.request_id=r-1\n"},
	} {
		var text bytes.Buffer
		log := slog.New(observe.NewHandler(slog.NewTextHandler(&text, nil)))
		c.with(log).InfoContext(c.ctx, "m", observe.Took(1234567*time.Nanosecond))
		if _, got, _ := strings.Cut(text.String(), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if n := testing.AllocsPerRun(100, func() { log.LogAttrs(c.ctx, slog.LevelDebug, "m") }); n != 0 {
			t.Errorf("%s: got %v allocations for a line below the level, want 0", name, n)
		}
	}
}

// "Outage logs a repeated error at the first, second, fourth, eighth time, and so on, with the number of errors so far.
// It also logs the first success after an error."
func TestOutage(t *testing.T) {
	var text bytes.Buffer
	o := observe.Outage{Log: slog.New(slog.NewTextHandler(&text, nil)), Message: "redis is away"}
	for range 7 {
		o.Note(t.Context(), errors.New("refused"))
	}
	o.Note(t.Context(), nil)
	o.Note(t.Context(), nil)
	var got []string
	for line := range strings.Lines(text.String()) {
		_, line, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		got = append(got, line)
	}
	want := []string{
		`level=WARN msg="redis is away" errors=1 error=refused`,
		`level=WARN msg="redis is away" errors=2 error=refused`,
		`level=WARN msg="redis is away" errors=4 error=refused`,
		`level=INFO msg="redis is away: over" errors=7`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

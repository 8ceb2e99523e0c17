package app_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

const (
	givenTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	givenSpan  = "00f067aa0ba902b7"
	parent     = "Traceparent: 00-" + givenTrace + "-" + givenSpan + "-01"
)

// "A request is one trace: the HTTP server's span, below it one for each SQL statement, BEGIN and COMMIT included, and
// for each Redis command. A W3C traceparent of the request is continued." "No value is in a span." Not parallel: the
// environment is the process's.
func TestShop_traces(t *testing.T) {
	for name, database := range map[string]func(*testing.T, app.Settings) app.Settings{
		"embedded": func(_ *testing.T, s app.Settings) app.Settings { return s },
		"MySQL":    onMySQL,
	} {
		t.Run(name, func(t *testing.T) {
			s := database(t, embedded(t, 5))
			got := startCollector(t)
			log := &testserver.LogBuffer{}
			s.Log = slog.New(slog.NewTextHandler(log, nil))
			shop := start(t, s)
			// A lease that is asked for together with others, such as a job's, is in no trace.
			for _, job := range []string{"expiry", "keys", "reconcile"} {
				testserver.Until(t, job+" runs", patience, func() bool { return log.Has("job runs here\" job=" + job) })
			}
			buy(t, shop, "geheim-key-1", parent, as(t, "geheim-ann")).Want(t, http.StatusCreated)
			untilReady(t, shop)
			if err := shop.Shutdown(context.Background()); err != nil {
				t.Fatal(err)
			}

			request := onlyRequest(t, got.all())
			if request.Name != "POST /v1/orders" || id(request.TraceId) != givenTrace || id(request.ParentSpanId) != givenSpan {
				t.Errorf("got span %v, want POST /v1/orders below %s of trace %s", request, givenSpan, givenTrace)
			}
			var below []string
			for _, span := range got.all() {
				if span == request {
					continue
				}
				if id(span.TraceId) != givenTrace || id(span.ParentSpanId) != id(request.SpanId) {
					t.Errorf("got span %v, want it below the request's", span)
				}
				below = append(below, span.Name)
			}
			for _, want := range []string{"evalsha", "sql.conn.begin_tx", "sql.conn.query", "sql.conn.exec", "sql.tx.commit"} {
				if !slices.Contains(below, want) {
					t.Errorf("got spans %q, want %s among them", below, want)
				}
			}
			if all := printed(got.all()); strings.Contains(all, "geheim") || !strings.Contains(all, "INSERT INTO") {
				t.Errorf("got spans %s, want statements without values", all)
			}
			if got.service[0] != "shop" {
				t.Errorf("got service %q, want shop", got.service[0])
			}
			if !log.Has("trace_id=" + givenTrace) {
				t.Errorf("got log %s, want the trace in it", log)
			}
		})
	}
}

// "A request that waits for a batch has the event `queued`. The batch is in the trace of the first request in it; the others
// link to that trace."
func TestShop_tracesOfBatch(t *testing.T) {
	s := embedded(t, 5)
	s.Redis, s.LeaseWait = miniredis.RunT(t).Addr(), 10*time.Second
	got := startCollector(t)
	shop := start(t, s)
	lease, waited := takeLease(t, s, "sku:mug")
	var buyers sync.WaitGroup
	for i := range 4 {
		buyers.Go(func() { buy(t, shop, "key-1", as(t, fmt.Sprint("buyer-", i))).Want(t, http.StatusCreated) })
		if i == 0 {
			waited()
		}
		queued := fmt.Sprintf("shop_queue_length{queue=\"lanes\"} %d\n", i) // behind the first, which waits for the lease
		testserver.Until(t, "the order is in line", patience, func() bool { return strings.Contains(scrape(t, shop), queued) })
	}
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
	buyers.Wait()
	if err := shop.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	var sold, linked []string
	for _, span := range got.all() {
		switch {
		case span.Name == "sql.tx.commit":
			sold = append(sold, id(span.TraceId))
		case span.Kind == traces.Span_SPAN_KIND_SERVER && span.Name == "POST /v1/orders":
			if len(span.Events) != 1 || span.Events[0].Name != "queued" {
				t.Errorf("got events %v, want queued", span.Events)
			}
			for _, link := range span.Links {
				linked = append(linked, id(link.TraceId))
			}
		}
	}
	if len(sold) != 2 || !slices.Equal(linked, []string{sold[1], sold[1]}) {
		t.Errorf("got commits in traces %q and links to %q, want two commits, and two links to the trace of the second", sold, linked)
	}
}

// onMySQL moves a shop's settings to a server that has been migrated and supplied.
func onMySQL(t *testing.T, s app.Settings) app.Settings {
	s.Data, s.MySQL = "", testserver.MySQL(t)
	supply(t, s, 5)
	return s
}

// "A collector that does not answer delays no request, and the shop's end by a few seconds at most."
func TestShop_noCollector(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+closedPort)
	shop := start(t, embedded(t, 5))
	buy(t, shop, "key-1").Want(t, http.StatusCreated)
	if err := shop.Shutdown(context.Background()); err != nil {
		t.Errorf("got %v, want a shop that ends well", err)
	}
}

// onlyRequest returns the span of the only request that was traced.
func onlyRequest(t *testing.T, spans []*traces.Span) (request *traces.Span) {
	t.Helper()
	for _, span := range spans {
		if span.Kind != traces.Span_SPAN_KIND_SERVER {
			continue
		}
		if request != nil {
			t.Errorf("got %v besides %v, want one request", span, request)
		}
		request = span
	}
	if request == nil {
		t.Fatalf("got spans %s, want one of the HTTP server", printed(spans))
	}
	return request
}

func printed(spans []*traces.Span) string {
	var text strings.Builder
	for _, span := range spans {
		text.WriteString(span.String() + "\n")
	}
	return text.String()
}

func id(raw []byte) string { return hex.EncodeToString(raw) }

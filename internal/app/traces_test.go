package app_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/app"
	"example.com/shop/internal/observe/otlp"
	"example.com/shop/internal/testserver"
)

// spanBook keeps the spans of a shop. The exporter in it would forget them when the shop shuts down.
type spanBook struct{ *tracetest.InMemoryExporter }

func (spanBook) Shutdown(context.Context) error { return nil }

// ofRequests returns the spans of the HTTP server, and the spans of its calls to other servers.
func (b spanBook) ofRequests() (requests, below tracetest.SpanStubs) {
	for _, span := range b.GetSpans() {
		if span.SpanKind == trace.SpanKindServer {
			requests = append(requests, span)
		} else {
			below = append(below, span)
		}
	}
	return requests, below
}

func startTraced(t *testing.T, s app.Settings) (*app.Shop, spanBook) {
	t.Helper()
	spans := spanBook{tracetest.NewInMemoryExporter()}
	shop, err := app.Start(t.Context(), s, app.Hooks{Spans: spans})
	testserver.Must(t, err)
	t.Cleanup(func() { _ = shop.Shutdown(context.Background()) })
	return shop, spans
}

// "A request is one trace: the HTTP server's span and, below it, a span for each SQL statement, BEGIN and COMMIT
// included, and for each Redis command. A W3C traceparent of the request is continued." "No span contains a value."
func TestShop_traces(t *testing.T) {
	t.Parallel()
	const givenTrace, givenSpan = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for _, database := range []string{"embedded", "MySQL"} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			s := embedded(t, 5)
			if database == "MySQL" {
				s.Data, s.MySQL = "", testserver.MySQL(t)
				supply(t, s, 5)
			}
			log := &testserver.LogBuffer{}
			s.Log = slog.New(slog.NewTextHandler(log, nil))
			shop, spans := startTraced(t, s)
			// A lease that is asked for together with others, such as a job's, is in no trace.
			for _, job := range []string{"expiry", "keys", "reconcile"} {
				testserver.Until(t, job+" runs", patience, func() bool { return log.Has("job runs here\" job=" + job) })
			}
			buy(t, shop, "geheim-key-1", "Traceparent: 00-"+givenTrace+"-"+givenSpan+"-01", as(t, "geheim-ann")).Want(t, http.StatusCreated)
			untilReady(t, shop)
			testserver.Must(t, shop.Shutdown(context.Background()))

			requests, below := spans.ofRequests()
			if len(requests) != 1 {
				t.Fatalf("got %+v, want the span of one request", requests)
			}
			request := requests[0]
			if request.Name != "POST /v1/orders" || request.SpanContext.TraceID().String() != givenTrace ||
				request.Parent.SpanID().String() != givenSpan {
				t.Errorf("got span %+v, want POST /v1/orders below %s of trace %s", request, givenSpan, givenTrace)
			}
			if !strings.Contains(request.Resource.String(), "service.name=shop") {
				t.Errorf("got %v, want the service shop", request.Resource)
			}
			var names []string
			for _, span := range below {
				if span.SpanContext.TraceID().String() != givenTrace || span.Parent.SpanID() != request.SpanContext.SpanID() {
					t.Errorf("got span %+v, want it below the request's", span)
				}
				names = append(names, span.Name)
			}
			for _, want := range []string{"evalsha", "sql.conn.begin_tx", "sql.conn.query", "sql.conn.exec", "sql.tx.commit"} {
				if !slices.Contains(names, want) {
					t.Errorf("got spans %q, want %s among them", names, want)
				}
			}
			if all := fmt.Sprintf("%+v", spans.GetSpans()); strings.Contains(all, "geheim") || !strings.Contains(all, "INSERT INTO") {
				t.Errorf("got spans %s, want statements without values", all)
			}
			if !log.Has("trace_id=" + givenTrace) {
				t.Errorf("got log %s, want the trace in it", log)
			}
		})
	}
}

// "A batch is in the trace of its first request; the traces of its other requests link to that trace."
func TestShop_tracesOfBatch(t *testing.T) {
	t.Parallel()
	s := embedded(t, 5)
	s.Redis, s.LeaseWait = miniredis.RunT(t).Addr(), 10*time.Second
	shop, spans := startTraced(t, s)
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
	testserver.Must(t, lease.Release())
	buyers.Wait()
	testserver.Must(t, shop.Shutdown(context.Background()))
	var sold, linked []trace.TraceID
	requests, below := spans.ofRequests()
	for _, span := range below {
		if span.Name == "sql.tx.commit" {
			sold = append(sold, span.SpanContext.TraceID())
		}
	}
	for _, span := range requests {
		for _, link := range span.Links {
			linked = append(linked, link.SpanContext.TraceID())
		}
	}
	if len(sold) != 2 || !slices.Equal(linked, []trace.TraceID{sold[1], sold[1]}) {
		t.Errorf("got commits in traces %v and links to %v, want two commits, and two links to the trace of the second", sold, linked)
	}
}

// "A collector that does not answer delays no request. It delays the end of the shop by a few seconds at most."
func TestShop_noCollector(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+closedPort)
	spans, err := otlp.Exporter(t.Context())
	testserver.Must(t, err)
	shop, err := app.Start(t.Context(), embedded(t, 5), app.Hooks{Spans: spans})
	testserver.Must(t, err)
	buy(t, shop, "key-1").Want(t, http.StatusCreated)
	if err := shop.Shutdown(context.Background()); err != nil {
		t.Errorf("got %v, want a shop that ends well", err)
	}
}

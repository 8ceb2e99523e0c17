package observe

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/XSAM/otelsql"
	"github.com/gin-gonic/gin"
	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Traces are the traces of one shop. They may be used by many goroutines at once.
type Traces struct {
	provider *sdk.TracerProvider
}

// StartTraces returns nil if the environment does not ask for traces. version is that of the program. An invalid
// variable is an error; a collector that does not answer is none.
func StartTraces(ctx context.Context, version string) (*Traces, error) {
	exporter, err := newExporter(ctx)
	if exporter == nil || err != nil {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "shop"), attribute.String("service.version", version)),
		resource.WithFromEnv(), // last: it wins
	)
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return &Traces{provider: sdk.NewTracerProvider(
		sdk.WithResource(about),
		sdk.WithSpanProcessor(ofRequests{sdk.NewBatchSpanProcessor(exporter)}),
	)}, nil
}

// newExporter returns nil if the environment does not ask for one.
func newExporter(ctx context.Context) (sdk.SpanExporter, error) {
	variable := "" // that has the collector's address
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		if os.Getenv(name) != "" {
			variable = name // the second wins
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
		return nil, fmt.Errorf("traces: OTEL_EXPORTER_OTLP_TRACES_PROTOCOL, or else OTEL_EXPORTER_OTLP_PROTOCOL, is %s: want http/protobuf", protocol)
	}
	// otlptracehttp takes localhost:4318 for a scheme and a path, and logs only that nothing arrives.
	u, err := url.Parse(os.Getenv(variable))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("traces: %s: want a URL with its scheme, such as http://localhost:4318", cmp.Or(variable, "OTEL_EXPORTER_OTLP_ENDPOINT"))
	}
	return otlptracehttp.New(ctx)
}

// Close sends the remaining spans, for five seconds at most. Close it after everything that makes spans. Spans that the
// collector does not accept are reported only to OpenTelemetry's error handler.
func (t *Traces) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = t.provider.Shutdown(ctx)
}

// ofRequests drops the spans of calls to a server outside a request, such as the renewal of a lease: each would be a
// trace of a single span.
type ofRequests struct{ sdk.SpanProcessor }

// OnEnd implements sdk.SpanProcessor.
func (p ofRequests) OnEnd(s sdk.ReadOnlySpan) {
	if s.SpanKind() != trace.SpanKindClient || s.Parent().IsValid() {
		p.SpanProcessor.OnEnd(s)
	}
}

// HTTP returns the middleware that makes a span of each request, except on routes for which leftOut returns true. It
// has to be the outermost one.
func (t *Traces) HTTP(leftOut func(route string) bool) gin.HandlerFunc {
	return otelgin.Middleware("",
		otelgin.WithTracerProvider(t.provider),
		otelgin.WithMeterProvider(noop.NewMeterProvider()),
		otelgin.WithPropagators(propagation.TraceContext{}),
		otelgin.WithGinFilter(func(c *gin.Context) bool { return !leftOut(c.FullPath()) }),
	)
}

// Redis adds a span for each command of the client. Call it once.
func (t *Traces) Redis(client redis.UniversalClient) error {
	err := redisotel.InstrumentTracing(client,
		redisotel.WithTracerProvider(t.provider),
		redisotel.WithDBStatement(false),
		redisotel.WithCallerEnabled(false),
		// The next three leave out the commands that open a connection.
		redisotel.WithDialFilter(true),
		redisotel.WithCommandFilter(OpensConnection),
		redisotel.WithCommandsFilter(func(c []redis.Cmder) bool { return slices.ContainsFunc(c, OpensConnection) }),
	)
	if err != nil {
		return fmt.Errorf("trace redis: %w", err)
	}
	return nil
}

// OpensConnection reports whether a command is one by which the client opens a connection. They belong to no request, and
// one of them contains the password.
func OpensConnection(c redis.Cmder) bool {
	return slices.Contains([]string{"hello", "auth", "client", "select"}, strings.ToLower(c.Name()))
}

// Database returns sql.OpenDB with a span for each statement. gorm's own plugin depends on the drivers of ClickHouse
// and PostgreSQL, and makes no span of a COMMIT.
func (t *Traces) Database(system string) func(driver.Connector) *sql.DB {
	return func(c driver.Connector) *sql.DB {
		return otelsql.OpenDB(c,
			otelsql.WithTracerProvider(t.provider),
			otelsql.WithMeterProvider(noop.NewMeterProvider()),
			otelsql.WithAttributes(attribute.String("db.system.name", system)),
			otelsql.WithSpanOptions(otelsql.SpanOptions{
				OmitConnResetSession: true,
				OmitRows:             true,
				// The driver's text may quote a row: "Duplicate entry 'ann-key-1'".
				RecordError: func(error) bool { return false },
			}),
			otelsql.WithSpanErrorAttributesGetter(errorAttributes),
		)
	}
}

// Share links the span of each request that a step is taken for, or that waited with it, to the span of ctx, under which the
// step is shown.
func (t *Traces) Share(ctx context.Context, requests func() []context.Context) context.Context {
	shown := trace.LinkFromContext(ctx)
	for _, request := range requests() {
		span, recorded := trace.SpanFromContext(request).(sdk.ReadWriteSpan)
		if !recorded || span.SpanContext().Equal(shown.SpanContext) {
			continue
		}
		if !slices.ContainsFunc(span.Links(), func(l sdk.Link) bool { return l.SpanContext.Equal(shown.SpanContext) }) {
			span.AddLink(shown)
		}
	}
	return ctx
}

// Waits adds to a request's span that it waits in a queue from now on.
func (t *Traces) Waits(ctx context.Context) { trace.SpanFromContext(ctx).AddEvent("queued") }

// errorAttributes describes an error without its text.
func errorAttributes(err error) []attribute.KeyValue {
	if errors.Is(err, driver.ErrSkip) {
		return nil // database/sql then tries another way
	}
	attributes := []attribute.KeyValue{attribute.String("error.type", fmt.Sprintf("%T", err))}
	if answer, ok := errors.AsType[*mysql.MySQLError](err); ok {
		attributes = append(attributes, attribute.String("db.response.status_code", strconv.Itoa(int(answer.Number))))
	}
	return attributes
}

package observe

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
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

// StartTraces returns Traces that go to exporter. An invalid variable is an error; a silent collector is not.
func StartTraces(ctx context.Context, exporter sdk.SpanExporter, version string) (*Traces, error) {
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

// Close sends the remaining spans, for five seconds at most. Close the Traces after everything that makes spans. Only
// OpenTelemetry's error handler hears of spans that the collector does not accept.
func (t *Traces) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = t.provider.Shutdown(ctx)
}

// ofRequests drops the spans of calls to a server outside a request, such as renewals. Each would be a
// trace of its own.
type ofRequests struct{ sdk.SpanProcessor }

func (p ofRequests) OnEnd(s sdk.ReadOnlySpan) {
	if s.SpanKind() != trace.SpanKindClient || s.Parent().IsValid() {
		p.SpanProcessor.OnEnd(s)
	}
}

// HTTP returns the outermost middleware. It makes a span for each request, except on routes for which
// leftOut returns true.
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

// OpensConnection reports whether the client uses the command to open a connection. Such commands
// belong to no request, and one of them contains the password.
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

// Share is for a step that serves several requests. Its spans are below the span of ctx, to which Share
// links each request.
func (t *Traces) Share(ctx context.Context, requests []context.Context) context.Context {
	shown := trace.LinkFromContext(ctx)
	for _, request := range requests {
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

package tracing

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/XSAM/otelsql"
	"github.com/gin-gonic/gin"
	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
)

// HTTP returns the middleware that makes a span of each request but those to the
// routes that are left out. It goes around everything else.
func (t *Traces) HTTP(leftOut func(route string) bool) gin.HandlerFunc {
	return otelgin.Middleware("",
		otelgin.WithTracerProvider(t.provider),
		otelgin.WithMeterProvider(noop.NewMeterProvider()),
		otelgin.WithPropagators(propagation.TraceContext{}),
		otelgin.WithGinFilter(func(c *gin.Context) bool { return !leftOut(c.FullPath()) }),
	)
}

// Redis makes the client, once, tell of its commands.
func (t *Traces) Redis(client redis.UniversalClient) error {
	err := redisotel.InstrumentTracing(client,
		redisotel.WithTracerProvider(t.provider),
		redisotel.WithDBStatement(false),
		redisotel.WithCallerEnabled(false),
		// Each of the three leaves out what it names: how a connection begins.
		redisotel.WithDialFilter(true),
		redisotel.WithCommandFilter(greeting),
		redisotel.WithCommandsFilter(func(c []redis.Cmder) bool { return slices.ContainsFunc(c, greeting) }),
	)
	if err != nil {
		return fmt.Errorf("trace redis: %w", err)
	}
	return nil
}

// greeting reports whether a command is of those with which the client opens a
// connection. One of them has the password.
func greeting(c redis.Cmder) bool {
	return slices.Contains([]string{"hello", "auth", "client", "select"}, strings.ToLower(c.Name()))
}

// Database is sql.OpenDB, with a span for each statement. gorm's own plugin would
// bring the drivers of ClickHouse and PostgreSQL along, and does not see a COMMIT.
func (t *Traces) Database(system string) func(driver.Connector) *sql.DB {
	return func(c driver.Connector) *sql.DB {
		return otelsql.OpenDB(c,
			otelsql.WithTracerProvider(t.provider),
			otelsql.WithMeterProvider(noop.NewMeterProvider()),
			otelsql.WithAttributes(attribute.String("db.system.name", system)),
			otelsql.WithSpanOptions(otelsql.SpanOptions{
				OmitConnResetSession: true,
				OmitRows:             true,
				// The driver's words may quote a row: "Duplicate entry 'ann-key-1'".
				RecordError: func(error) bool { return false },
			}),
			otelsql.WithSpanErrorAttributesGetter(errorAttributes),
		)
	}
}

// errorAttributes tells an error without its words.
func errorAttributes(err error) []attribute.KeyValue {
	if errors.Is(err, driver.ErrSkip) {
		return nil // database/sql asks in another way
	}
	attributes := []attribute.KeyValue{attribute.String("error.type", fmt.Sprintf("%T", err))}
	if answer := (*mysql.MySQLError)(nil); errors.As(err, &answer) {
		attributes = append(attributes, attribute.String("db.response.status_code", strconv.Itoa(int(answer.Number))))
	}
	return attributes
}

package observe

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// "Tracing is off, and costs nothing, unless one of OpenTelemetry's standard variables asks for it." Not parallel: the
// environment is the process's.
func TestStartTraces(t *testing.T) {
	const endpoint = "http://127.0.0.1:4318"
	for name, c := range map[string]struct {
		variables map[string]string
		on        bool
		names     string // in an error
	}{
		"nothing":                    {nil, false, ""},
		"endpoint":                   {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, true, ""},
		"endpoint of traces":         {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint}, true, ""},
		"another endpoint":           {map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": endpoint}, false, ""},
		"exporter":                   {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, false, "OTEL_EXPORTER_OTLP_ENDPOINT: want"},
		"none, whatever the rest":    {map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, false, ""},
		"disabled":                   {map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, false, ""},
		"protocol of traces":         {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, true, ""},
		"another protocol":           {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, "OTEL_EXPORTER_OTLP_PROTOCOL, is grpc: want http/protobuf"},
		"unknown exporter":           {map[string]string{"OTEL_TRACES_EXPORTER": "pigeon"}, false, "OTEL_TRACES_EXPORTER"},
		"endpoint without scheme":    {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}, false, "OTEL_EXPORTER_OTLP_ENDPOINT: want a URL with its scheme, such as http://localhost:4318"},
		"address without scheme":     {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "127.0.0.1:4318"}, false, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: want"},
		"endpoint that is not used":  {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_ENDPOINT": "localhost"}, true, ""},
		"attributes without a value": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_RESOURCE_ATTRIBUTES": "a"}, false, "OTEL_RESOURCE_ATTRIBUTES"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.variables {
				t.Setenv(variable, value)
			}
			got, err := StartTraces(t.Context(), "v1")
			if (err != nil) != (c.names != "") || err != nil && !strings.Contains(err.Error(), c.names) {
				t.Fatalf("got error %v, want one that names %q", err, c.names)
			}
			if (got != nil) != c.on {
				t.Errorf("got traces %v, want %v", got != nil, c.on)
			}
			if got != nil {
				got.Close()
			}
		})
	}
}

// "Errors of the database their numbers. MySQL's own words may quote a row."
func TestErrorAttributes(t *testing.T) {
	t.Parallel()
	duplicate := &mysql.MySQLError{Number: 1062, Message: "Duplicate entry 'ann-key-1' for key 'PRIMARY'"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{duplicate, "[error.type=*mysql.MySQLError db.response.status_code=1062]"},
		{driver.ErrBadConn, "[error.type=*errors.errorString]"},
		{driver.ErrSkip, "[]"},
	} {
		var got []string
		for _, a := range errorAttributes(c.err) {
			got = append(got, string(a.Key)+"="+a.Value.String())
		}
		if got := fmt.Sprint(got); got != c.want {
			t.Errorf("%v: got %s, want %s", c.err, got, c.want)
		}
	}
}

// Package observe provides metrics for Prometheus, traces for OpenTelemetry, and the ids of requests in the log.
//
//	m := observe.NewMetrics(version, commit)
//	locker := lock.New(backend, lock.Options{Observer: m.Lock("redis")})
//	operators.Handle("/metrics", m.Handler())
//
// # Metrics
//
// NewMetrics lists the metrics, each with its help. Each Metrics has a registry of its own, so that several shops in
// one process do not add to each other's numbers. Only the numbers of the process and of Go are shared.
//
// The values of labels are few and come from this program: no label has a key, a SKU, a buyer, or a path that a client
// made up. Lost leases and failed runs of a job are counted from 0 on, so that the first increase is noticed. Names and
// types follow the conventions of Prometheus.
//
// # Traces
//
// Tracing is off, and costs nothing, unless one of OpenTelemetry's standard variables asks for it:
//
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318   or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
//
// OTEL_TRACES_EXPORTER=none or OTEL_SDK_DISABLED=true switches tracing off in any case. Package otlp reads the
// variables, and sends traces as OTLP over HTTP, in protobuf. It also reads OTEL_EXPORTER_OTLP_HEADERS,
// OTEL_SERVICE_NAME (default "shop"), OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and OTEL_BSP_.
//
//   - A request is one trace: the HTTP server's span and, below it, a span for each SQL statement, BEGIN and COMMIT
//     included, and for each Redis command. A W3C traceparent of the request is continued. Under load, the lock sends
//     the commands of many requests as one command, which is in no trace.
//   - No span contains a value: SQL has its placeholders, Redis commands have their names, and errors of the database
//     have their numbers. The text of a MySQL error may quote a row.
//   - Health checks make no trace, nor does work outside a request, such as the renewal of a lease.
//   - A collector that does not answer delays no request. It delays the end of the shop by a few seconds at most.
//
// # Logs
//
// A line that is logged with the context of a request has the request_id; a line inside a trace also has trace_id and
// span_id. A line below the handler's level costs nothing.
package observe

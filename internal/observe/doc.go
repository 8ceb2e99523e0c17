// Package observe provides metrics for Prometheus, traces for OpenTelemetry, and the request's id in each line of the
// log.
//
//	m := observe.NewMetrics(version, commit)
//	locker := lock.New(backend, lock.Options{Observer: m.Lock("redis")})
//	operators.Handle("/metrics", m.Handler())
//
// # Metrics
//
// NewMetrics lists the metrics, each with its help. A Metrics has its own registry: several shops in one process do not
// add to each other's numbers, except for those of the process and of Go.
//
// Labels have few values, all of them this program's: no key, no SKU, no buyer, no path that a client made up. Lost
// leases and failed runs of a job are counted from 0 on, so that the first increase is noticed. Names and types follow
// the conventions of Prometheus.
//
// # Traces
//
// Tracing is off, and costs nothing, unless one of OpenTelemetry's standard variables asks for it:
//
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318   or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
//
// OTEL_TRACES_EXPORTER=none or OTEL_SDK_DISABLED=true also switches it off. Package otlp, which reads the variables, sends
// traces as OTLP over HTTP, in protobuf. OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME (default "shop"),
// OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and OTEL_BSP_ count as well.
//
//   - A request is one trace: the HTTP server's span, below it one for each SQL statement, BEGIN and COMMIT included,
//     and for each Redis command. A W3C traceparent of the request is continued. Under load the lock sends the commands
//     of many requests in one: that one is in no trace.
//   - No value is in a span: SQL has its placeholders, Redis commands their names, errors of the database their
//     numbers. MySQL's own words may quote a row.
//   - Health checks make no trace, nor does work outside a request, such as the renewal of a lease.
//   - A collector that does not answer delays no request, and the shop's end by a few seconds at most.
//
// # Logs
//
// A line that is logged with the context of a request has its request_id; one that is logged inside a trace also has
// trace_id and span_id. A line below the handler's level costs nothing.
package observe

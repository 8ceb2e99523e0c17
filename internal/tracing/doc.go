// Package tracing sends a shop's traces to whoever collects them.
//
// It is off, and costs nothing, unless one of OpenTelemetry's standard variables
// asks for it:
//
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318   or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
//	OTEL_TRACES_EXPORTER=otlp                           or console; none switches it off
//
// OTEL_SDK_DISABLED=true switches it off, too. The others count as well where it is
// on: OTEL_EXPORTER_OTLP_PROTOCOL (http/protobuf or grpc) and _HEADERS, OTEL_SERVICE_NAME
// (default "shop"), OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_BSP_ and so on.
// They are read by OpenTelemetry's own packages, from the process's environment.
//
// What is promised:
//
//   - A request is one trace: the HTTP server's span, below it one for each SQL
//     statement, BEGIN and COMMIT included, and for each Redis command. A W3C
//     traceparent of the request is continued. Under load the lock sends the commands
//     of many requests in one: that one is in no trace.
//   - No value is in a span: SQL has its placeholders, Redis commands their names,
//     errors of the database their numbers. MySQL's own words may quote a row.
//   - Probes of health and readiness make no trace, nor does what belongs to no
//     request, such as the renewal of a lease.
//   - A collector that does not answer delays no request, and the shop's end by a few
//     seconds at most.
package tracing

package main

import "log/slog"

// traceLog takes what OpenTelemetry could not send. The library has one handler
// for the whole process.
type traceLog struct{ log *slog.Logger }

// Handle implements otel.ErrorHandler.
func (t traceLog) Handle(err error) { t.log.Warn("traces are not sent", "error", err) }

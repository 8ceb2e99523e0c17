package main

import (
	"io"
	"log/slog"
)

// newLog returns a logger in one of the formats and from one of the levels that
// the command line allows.
func newLog(w io.Writer, format, level string) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	var from slog.Level
	if err := from.UnmarshalText([]byte(level)); err == nil {
		options.Level = from
	}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

package logs

import (
	"log/slog"
	"time"
)

// Took is how long something took, as every line says it: took_ms, in
// milliseconds.
func Took(d time.Duration) slog.Attr {
	return slog.Float64("took_ms", float64(d.Microseconds())/1000)
}

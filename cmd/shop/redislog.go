package main

import (
	"context"
	"fmt"
	"log/slog"
)

// redisLog takes what go-redis would print. Its errors are returned and logged
// where they matter, so that its own account is for whoever looks closely. The
// library has one logger for the whole process.
type redisLog struct{ log *slog.Logger }

func (r redisLog) Printf(ctx context.Context, format string, args ...any) {
	r.log.DebugContext(ctx, "redis client", "message", fmt.Sprintf(format, args...))
}

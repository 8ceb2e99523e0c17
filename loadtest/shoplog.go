package main

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
)

// maxComplaints is how many errors of the shops are shown: what goes wrong for
// one buyer goes wrong for a thousand.
const maxComplaints = 5

// newShopLog shows the first few errors of the shops that were started.
func newShopLog(w io.Writer) *slog.Logger {
	text := slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelError})
	return slog.New(firstFew{Handler: text, seen: new(atomic.Int64)}).With("from", "shop")
}

// firstFew lets maxComplaints records pass.
type firstFew struct {
	slog.Handler
	seen *atomic.Int64
}

func (f firstFew) Handle(ctx context.Context, r slog.Record) error {
	if f.seen.Add(1) > maxComplaints {
		return nil
	}
	return f.Handler.Handle(ctx, r)
}

func (f firstFew) WithAttrs(attrs []slog.Attr) slog.Handler {
	return firstFew{Handler: f.Handler.WithAttrs(attrs), seen: f.seen}
}

func (f firstFew) WithGroup(name string) slog.Handler {
	return firstFew{Handler: f.Handler.WithGroup(name), seen: f.seen}
}

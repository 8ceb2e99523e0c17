package ui

import (
	"context"
	"sync"
)

// line is where races stand until as many are ready as start together.
type line struct {
	mu      sync.Mutex
	missing int
	open    chan struct{}
}

func newLine(races int) *line { return &line{missing: races, open: make(chan struct{})} }

// await returns when all are here or have left, or ctx ends.
func (l *line) await(ctx context.Context) {
	l.leave()
	select {
	case <-l.open:
	case <-ctx.Done():
	}
}

// leave means that others need not wait any more. Of a race that was at the line
// the second call is one too many, and harmless: the line is open by then, or the
// run has ended.
func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missing--
	if l.missing == 0 {
		close(l.open)
	}
}

package testserver

import (
	"strings"
	"sync"
)

// LogBuffer keeps what a program writes to its stderr, its log or its network. Several goroutines may write to it at once,
// and a test may read it meanwhile. An empty one is ready to use.
type LogBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer. It never fails.
func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns all that was written so far.
func (b *LogBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Has reports whether the text was written.
func (b *LogBuffer) Has(text string) bool { return strings.Contains(b.String(), text) }

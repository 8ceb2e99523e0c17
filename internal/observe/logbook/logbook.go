// Package logbook is for tests: it keeps what a program writes, to be read while the program runs.
package logbook

import (
	"strings"
	"sync"
)

// Book stands in for the file that is a program's stderr or its log, or for its network: several goroutines may write
// to it at once, and a test may read it meanwhile. An empty one is ready to use.
type Book struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer. It never fails.
func (b *Book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns all that was written so far.
func (b *Book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Has reports whether the text was written.
func (b *Book) Has(text string) bool { return strings.Contains(b.String(), text) }

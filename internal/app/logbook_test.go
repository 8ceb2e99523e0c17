package app_test

import (
	"strings"
	"sync"
)

// logBook is what a shop logs, read while it is written.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBook) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logBook) has(text string) bool { return strings.Contains(l.String(), text) }

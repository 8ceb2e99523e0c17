package orderhttp

import (
	"sync"

	"example.com/shop/internal/order"
)

const (
	shortBody   = 512  // bytes
	knownBodies = 1024 // at most, each of about 1 KB with its lines
)

// bodies remembers what short bodies of orders say. Where a crowd wants one SKU, nearly
// all of them are the same text, and one has been checked and parsed for all. The zero
// value is ready to use, by many goroutines at once.
type bodies struct {
	mu    sync.RWMutex
	known map[string][]order.RequestLine // by the text of a body that could be parsed
}

// lines returns what body says, which nobody may change.
func (b *bodies) lines(body []byte) ([]order.RequestLine, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	lines, ok := b.known[string(body)]
	return lines, ok
}

// remember keeps what body says, if it is short. When there are too many, it starts anew.
func (b *bodies) remember(body []byte, lines []order.RequestLine) {
	if len(body) > shortBody || len(lines) > order.MaxLines {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil || len(b.known) == knownBodies {
		b.known = map[string][]order.RequestLine{}
	}
	b.known[string(body)] = lines
}

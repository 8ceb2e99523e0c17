package testserver

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
)

// Wiretap keeps what clients send to a server, as an eavesdropper would.
type Wiretap struct {
	Addr string // through it

	mu   sync.Mutex
	sent bytes.Buffer
}

// NewWiretap starts one in front of a server, until the test ends.
func NewWiretap(t testing.TB, server string) *Wiretap {
	t.Helper()
	w := &Wiretap{}
	w.Addr = Relay(t, server, func(client, server net.Conn) {
		BothWays(client, server,
			func() { _, _ = io.Copy(server, io.TeeReader(client, w)) },
			func() { _, _ = io.Copy(client, server) })
	})
	return w
}

// Write implements io.Writer.
func (w *Wiretap) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent.Write(p)
}

// Saw reports whether a client sent the words in the clear.
func (w *Wiretap) Saw(words string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.sent.Bytes(), []byte(words))
}

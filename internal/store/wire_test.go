package store_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// wire is a proxy that keeps what clients send, as an eavesdropper would.
type wire struct {
	target string

	mu   sync.Mutex
	sent bytes.Buffer
}

// tap starts a wire and returns the DSN that leads through it, until the test ends.
// The connections have to be closed by then.
func tap(t *testing.T, dsn string) (through string, w *wire) {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w = &wire{target: config.Addr}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { w.carry(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return strings.Replace(dsn, config.Addr, listener.Addr().String(), 1), w
}

// carry passes on what both sides say until one of them hangs up.
func (w *wire) carry(client net.Conn) {
	server, err := net.Dial("tcp", w.target)
	if err != nil {
		_ = client.Close()
		return
	}
	var answers sync.WaitGroup
	answers.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	_, _ = io.Copy(io.MultiWriter(server, w), client)
	_ = server.Close()
	answers.Wait()
}

// Write implements io.Writer.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent.Write(p)
}

// saw reports whether a client sent the word in the clear.
func (w *wire) saw(word string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.sent.Bytes(), []byte(word))
}

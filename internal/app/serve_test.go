package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

var errBroken = errors.New("broken")

type brokenListener struct{ net.Listener }

func (brokenListener) Accept() (net.Conn, error) { return nil, errBroken }
func (brokenListener) Close() error              { return nil }
func (brokenListener) Addr() net.Addr            { return &net.TCPAddr{} }

// The server's own failure ends the shop and is told.
func TestShop_serveFails(t *testing.T) {
	t.Parallel()
	shop := &Shop{
		server:       &http.Server{ReadHeaderTimeout: time.Second},
		parts:        &parts{},
		log:          slog.New(slog.DiscardHandler),
		drainTimeout: time.Second,
		done:         make(chan struct{}),
	}
	if err := shop.Err(); err != nil {
		t.Errorf("got %v before the end, want nil", err)
	}
	shop.serve(brokenListener{})
	<-shop.Done()
	if err := shop.Err(); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want %v", err, errBroken)
	}
	if err := shop.Shutdown(context.Background()); err != nil {
		t.Errorf("got %v from Shutdown after a failure, want nil", err)
	}
}

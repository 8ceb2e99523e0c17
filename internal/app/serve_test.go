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

func testDoor(listener net.Listener) *door {
	return &door{flag: "listen", server: &http.Server{ReadHeaderTimeout: time.Second}, listener: listener}
}

// "Done is closed ... by a failure of either listener", and the failure is told.
func TestShop_serveFails(t *testing.T) {
	t.Parallel()
	sound, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ front, back *door }{
		"alone":    {testDoor(brokenListener{}), nil},
		"operator": {testDoor(sound), testDoor(brokenListener{})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := &Shop{
				front: c.front, back: c.back,
				parts:        &parts{},
				log:          slog.New(slog.DiscardHandler),
				drainTimeout: time.Second,
				done:         make(chan struct{}),
			}
			if err := shop.Err(); err != nil {
				t.Errorf("got %v before the end, want nil", err)
			}
			go shop.serve()
			<-shop.Done()
			if err := shop.Err(); !errors.Is(err, errBroken) {
				t.Errorf("got %v, want %v", err, errBroken)
			}
			if err := shop.Shutdown(context.Background()); err != nil {
				t.Errorf("got %v from Shutdown after a failure, want nil", err)
			}
		})
	}
}

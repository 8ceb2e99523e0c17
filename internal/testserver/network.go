package testserver

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Listen listens on a free port of this machine until the test ends. serve gets each client in a goroutine of its own.
// The connection is closed when serve returns; when the test ends it is closed first, and serve waited for.
func Listen(t testing.TB, serve func(client net.Conn)) (addr string) {
	t.Helper()
	addr, stop, err := listen(t.Context(), func(_ context.Context, client net.Conn) { serve(client) })
	Must(t, err)
	t.Cleanup(stop)
	return addr
}

// listen is Listen until stop, which also ends the context that serve gets.
func listen(ctx context.Context, serve func(ctx context.Context, client net.Conn)) (addr string, stop func(), err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer client.Close()
				defer context.AfterFunc(ctx, func() { _ = client.Close() })()
				serve(ctx, client)
			})
		}
	})
	return listener.Addr().String(), func() {
		_ = listener.Close()
		end()
		running.Wait()
	}, nil
}

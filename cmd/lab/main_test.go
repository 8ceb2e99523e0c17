package main

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"example.com/shop/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// "Exit codes: 0 done, 1 failed, 2 used wrongly."
func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"version":         {[]string{"--version"}, 0},
		"unknown flag":    {[]string{"--lisen", ":0"}, 2},
		"empty redis":     {[]string{"--redis="}, 2},
		"thinks too long": {[]string{"--think", "2s"}, 2},
		"TLS":             {[]string{"--redis", "rediss://cache:6379"}, 2},
		"two databases":   {[]string{"--mysql", "shop@tcp(db:1)/shop", "--data", "folder"}, 2},
		"no such server":  {[]string{"--redis", "127.0.0.1:1", "--start-timeout", "100ms"}, 1},
	} {
		if got := run(t.Context(), c.args); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

// A shop that is asked to end has ended well.
func TestRun_serves(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	testserver.Must(t, err)
	addr := free.Addr().String()
	testserver.Must(t, free.Close())
	ctx, end := context.WithCancel(t.Context())
	defer end()
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"--listen", addr}) }()
	testserver.Until(t, "the shop is ready", time.Minute, func() bool {
		w, err := http.Get("http://" + addr + "/readyz")
		return err == nil && w.Body.Close() == nil && w.StatusCode == http.StatusOK
	})
	http.DefaultClient.CloseIdleConnections()
	end()
	if got := <-code; got != 0 {
		t.Errorf("got %d, want 0", got)
	}
}

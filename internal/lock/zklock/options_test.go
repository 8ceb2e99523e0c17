package zklock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
)

func TestOptions_Validate(t *testing.T) {
	for _, good := range []zklock.Options{{}, {Root: "/a"}, {Root: "/shop/locks"}, {SessionTimeout: time.Second}} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for name, bad := range map[string]zklock.Options{
		"SessionTimeout": {SessionTimeout: -1},
		`Root "/"`:       {Root: "/"},
		`Root "a"`:       {Root: "a"},
		`Root "/a/"`:     {Root: "/a/"},
		`Root "/a//b"`:   {Root: "/a//b"},
		`Root "/a/../b"`: {Root: "/a/../b"},
		`Root "/zookee`:  {Root: "/zookeeper/locks"},
	} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: got %v, want an error that names %s", bad, err, name)
		}
		if _, err := zklock.New([]string{"localhost"}, bad); err == nil {
			t.Errorf("%+v: New takes it", bad)
		}
	}
	if _, err := zklock.New(nil, zklock.Options{}); err == nil {
		t.Error("New takes no servers")
	}
}

// "Every wait has a deadline", also where no server answers: one accepts
// connections and says nothing, one is not there at all.
func TestBackend_NoServer(t *testing.T) {
	t.Parallel()
	mute, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	for _, addr := range []string{mute.Addr().String(), "127.0.0.1:1"} {
		b, err := zklock.New([]string{addr}, zklock.Options{})
		if err != nil {
			t.Fatal(err)
		}
		locker := lock.New(b, lock.Options{MaxWait: 50 * time.Millisecond})
		if _, err := locker.Acquire(t.Context(), "key"); !errors.Is(err, lock.ErrTimeout) {
			t.Errorf("Acquire: %v, want ErrTimeout", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := locker.TryAcquire(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("TryAcquire: %v, want DeadlineExceeded", err)
		}
		cancel()
		began := time.Now()
		if err := locker.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("Close took %v", took)
		}
		if _, err := b.Acquire(t.Context(), lock.Claim{Key: "key", Owner: "me", TTL: time.Second}); !errors.Is(err, lock.ErrClosed) {
			t.Errorf("Acquire after Close: %v, want ErrClosed", err)
		}
		if err := b.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	}
}

// "A handshake is as patient as it is told to be": a server that stops in the
// middle of its first answer is left for the next.
func TestBackend_ServerFallsSilent(t *testing.T) {
	t.Parallel()
	addr := testserver.ZooKeeper(t)
	mute, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan net.Conn, 1)
	go func() {
		conn, err := mute.Accept()
		if err == nil {
			_, _ = conn.Write([]byte{0, 0, 0, 37}) // the length, and nothing more
		}
		answered <- conn
	}()
	t.Cleanup(func() {
		_ = mute.Close()
		if conn := <-answered; conn != nil {
			_ = conn.Close()
		}
	})
	var dials atomic.Int32
	b := connect(t, addr, zklock.Options{
		Root:           newRoot(),
		SessionTimeout: time.Second,
		Dial: func(network, address string, timeout time.Duration) (net.Conn, error) {
			if dials.Add(1) == 1 {
				address = mute.Addr().String()
			}
			return net.DialTimeout(network, address, timeout)
		},
	})
	c := lock.Claim{Key: "key", Owner: "me", TTL: shortTTL}
	if g, err := b.Acquire(bounded(t), c); err != nil || g.Held {
		t.Errorf("Acquire: %+v, %v", g, err)
	}
}

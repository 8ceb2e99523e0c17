package mysqllock_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/mysqllock"
	"example.com/shop/internal/testserver"
)

// commit is that request, and not the READ COMMITTED of another.
const commit = "\x03COMMIT"

// "Acquire, Renew and Release get a context with a deadline, and return by then, also where the store is silent or the
// driver knows no contexts": whatever the request is on which the connection falls silent.
func TestBackend_SilentConnection(t *testing.T) {
	mine := lock.Claim{Key: "mine", Owner: "me", TTL: long}
	acquire := func(key string) func(context.Context, *mysqllock.Backend) error {
		return func(ctx context.Context, b *mysqllock.Backend) error {
			_, err := b.Acquire(ctx, lock.Claim{Key: key, Owner: "me", TTL: long})
			return err
		}
	}
	renew := func(ctx context.Context, b *mysqllock.Backend) error {
		_, err := b.Renew(ctx, mine)
		return err
	}
	for name, c := range map[string]struct {
		request string
		call    func(context.Context, *mysqllock.Backend) error
		known   bool // what became of the claim
	}{
		"Acquire, BEGIN":    {request: "START TRANSACTION", call: acquire("free")},
		"Acquire, look":     {request: "FOR UPDATE NOWAIT", call: acquire("free")},
		"Acquire, ROLLBACK": {request: "ROLLBACK", call: acquire("theirs"), known: true},
		"Acquire, COMMIT":   {request: commit, call: acquire("free")},
		"Renew, COMMIT":     {request: commit, call: renew},
		"Release": {request: "SET owner = ''", call: func(ctx context.Context, b *mysqllock.Backend) error {
			return b.Release(ctx, mine)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, dsn string) {
				direct := newBackend(t, open(t, dsn))
				mustGrant(t, direct, mine)
				mustGrant(t, direct, lock.Claim{Key: "theirs", Owner: "they", TTL: long})
				mustGrant(t, direct, lock.Claim{Key: "free", Owner: "they", TTL: long})
				if err := direct.Release(bounded(t), lock.Claim{Key: "free", Owner: "they"}); err != nil {
					t.Fatal(err)
				}
				w, dsn := throughWire(t, dsn)
				b := mysqllock.New(open(t, dsn))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				fell := w.silence(c.request)
				returned := make(chan error, 1)
				go func() { returned <- c.call(ctx, b) }()
				await(t, fell)
				cancel()
				if err := await(t, returned); errors.Is(err, context.Canceled) == c.known || c.known && err != nil {
					t.Errorf("got %v, want the context's error: %t", err, !c.known)
				}
			})
		})
	}
}

// "If the answer to the COMMIT is lost, asking again or a release settles it", also where the COMMIT itself is late: a
// release waits for it at the row, and who asks again is told that the key is held until then.
func TestBackend_LateCommit(t *testing.T) {
	mine := lock.Claim{Key: "key", Owner: "me", TTL: long}
	for _, how := range []string{"Release", "asking again"} {
		t.Run(how, func(t *testing.T) {
			onBoth(t, func(t *testing.T, dsn string) {
				pool := open(t, dsn)
				direct := newBackend(t, pool)
				w, dsn := throughWire(t, dsn)
				b := mysqllock.New(open(t, dsn))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				fell := w.silence(commit)
				go func() { <-fell; cancel() }()
				acquired := make(chan error, 1)
				go func() {
					_, err := b.Acquire(ctx, mine)
					acquired <- err
				}()
				if err := await(t, acquired); err == nil {
					t.Fatal("Acquire: granted without an answer to the COMMIT")
				}
				if how == "asking again" { // the wire is silent for that one connection
					mustBeHeld(t, b, mine)
					w.speak()
					for g := mustBeHeldOrMine(t, b, mine); g.Held; g = mustBeHeldOrMine(t, b, mine) {
						if err := b.Wait(bounded(t), mine, g); err != nil {
							t.Fatal(err)
						}
					}
					if err := b.Release(bounded(t), mine); err != nil {
						t.Errorf("Release: %v", err)
					}
				} else {
					released := make(chan error, 1)
					go func() { released <- b.Release(bounded(t), mine) }()
					blocked(t, pool)
					w.speak()
					if err := await(t, released); err != nil {
						t.Errorf("Release: %v", err)
					}
				}
				mustGrant(t, direct, lock.Claim{Key: "key", Owner: "next", TTL: long})
			})
		})
	}
}

func mustBeHeldOrMine(t *testing.T, b lock.Backend, c lock.Claim) lock.Grant {
	t.Helper()
	g, err := b.Acquire(bounded(t), c)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return g
}

// await fails the test if nothing comes.
func await[T any](t testing.TB, c <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-c:
	case <-bounded(t).Done():
		t.Fatalf("nothing for %v", patience)
	}
	return value
}

// wire is a way to a server on which one connection can fall silent, without breaking, when a request is sent.
type wire struct {
	mu     sync.Mutex
	word   []byte        // of the request that gets stuck; nil: none
	fell   chan struct{} // closed when it is stuck
	speaks chan struct{} // closed when it goes on
}

// throughWire returns the DSN that leads through it, until the test ends.
func throughWire(t *testing.T, dsn string) (w *wire, through string) {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	w = &wire{speaks: make(chan struct{})}
	config.Addr = testserver.Relay(t, config.Addr, func(client, server net.Conn) {
		testserver.BothWays(client, server,
			func() { w.requests(server, client) },
			func() { _, _ = io.Copy(client, server) })
	})
	t.Cleanup(w.speak)
	return w, config.FormatDSN()
}

// requests copies them; one may get stuck.
func (w *wire) requests(server, client net.Conn) {
	buffer := make([]byte, 4096)
	for {
		n, err := client.Read(buffer)
		w.hear(buffer[:n])
		if _, failed := server.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}

// silence lets the next request that holds the word get stuck, and all that follows on its connection. The channel is
// closed when that has happened.
func (w *wire) silence(word string) (fell <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.word, w.fell = []byte(word), make(chan struct{})
	return w.fell
}

func (w *wire) hear(request []byte) {
	w.mu.Lock()
	stuck := w.word != nil && bytes.Contains(request, w.word)
	if stuck {
		w.word = nil
		close(w.fell)
	}
	w.mu.Unlock()
	if stuck {
		<-w.speaks
	}
}

// speak lets it go on.
func (w *wire) speak() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.word = nil
	select {
	case <-w.speaks:
	default:
		close(w.speaks)
	}
}

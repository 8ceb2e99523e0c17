package store_test

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/store"
)

// servers is the table of MySQL and its kin.
func servers() map[string]func(testing.TB) (dsn string) {
	return map[string]func(testing.TB) string{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB}
}

func eachServer(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Helper()
	for name, schema := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, schema(t))
		})
	}
}

// proxy stands between a client and its server, and breaks the connection at a
// moment of its choice. The fields are set before the first connection.
type proxy struct {
	refuse  atomic.Int64 // so many connections are closed at once
	word    []byte       // what the moment is: the client sends this
	forward bool         // the server gets it, only its answer is lost
	spotted func()       // called at the moment, nil for breaking the connection

	target   string
	listener net.Listener
	running  sync.WaitGroup
}

// through returns a proxy and the DSN that leads through it.
func through(t *testing.T, dsn string, p *proxy) string {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p.target = config.Addr
	p.listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.running.Go(p.serve)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.running.Wait()
	})
	config.Addr = p.listener.Addr().String()
	return config.FormatDSN()
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.refuse.Add(-1) >= 0 {
			_ = client.Close()
			continue
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		broken := &atomic.Bool{}
		hangUp := func() { _ = client.Close(); _ = server.Close() }
		p.running.Go(func() { defer hangUp(); p.requests(client, server, broken) })
		p.running.Go(func() { defer hangUp(); answers(server, client, broken) })
	}
}

func (p *proxy) requests(client, server net.Conn, broken *atomic.Bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if len(p.word) > 0 && bytes.Contains(buffer[:n], p.word) {
			if p.spotted != nil {
				p.spotted()
			} else {
				broken.Store(true)
				if !p.forward {
					return
				}
			}
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// answers passes on what the server says, unless the connection is to break: it
// does so when the server has answered, that is, when it has done its work.
func answers(server, client net.Conn, broken *atomic.Bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil || broken.Load() {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func open(t *testing.T, dsn string) *gorm.DB {
	t.Helper()
	db, err := store.MySQL(t.Context(), dsn, store.Pool{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = store.Close(db) })
	return db
}

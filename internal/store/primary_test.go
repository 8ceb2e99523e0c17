package store_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store"
	"example.com/shop/internal/testserver"
)

// "Like the driver, splitHosts looks between the parentheses": each host has an address and a name in the
// certificate of its own. A password may look like a list of hosts.
func TestReadDSN_hosts(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"u:p@tcp(db1:1,db2:2,db3)/shop?tls=true":     "db1:1/db1 db2:2/db2 db3:3306/db3",
		"u:p@tcp(db1:1, db2)/shop?tls=true":          "db1:1/db1 db2:3306/db2",
		"u:p@tcp([::1]:1,[fe80::2]:2)/shop?tls=true": "[::1]:1/::1 [fe80::2]:2/fe80::2",
		"u:a@tcp(x,y)/z@tcp(db1,db2)/shop?tls=true":  "db1:3306/db1 db2:3306/db2",
		"u:p@tcp(db1:1)/shop?tls=true":               "db1:1/db1",
	} {
		configs, err := store.ReadDSN(dsn)
		var got []string
		for _, c := range configs {
			got = append(got, c.Addr+"/"+c.TLS.ServerName)
			if c.DBName != "shop" || !strings.HasSuffix(dsn[:strings.LastIndex(dsn, "@")], c.Passwd) {
				t.Errorf("%s: got database %s, password %s", dsn, c.DBName, c.Passwd)
			}
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, %v, want %s", dsn, got, err, want)
		}
	}
	if configs, err := store.ReadDSN("u:p@unix(/run/a,b)/shop"); err != nil || len(configs) != 1 {
		t.Errorf("got %d sockets, %v, want one whose path has a comma", len(configs), err)
	}
}

// A server that is in no group is the primary while it is writable: MariaDB has no groups. When it is not, the
// connections to it are closed, whatever waits on them, and the error says of each host why it was not chosen. One that
// has too many connections stays the primary.
func TestMySQL_hosts(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, testserver.OpenMariaDB)
	config, err := mysql.ParseDSN(server.DSN(t))
	testserver.Must(t, err)
	const down = "127.0.0.1:1"
	config.Addr = down + "," + server.Addr()
	s, err := store.MySQL(t.Context(), config.FormatDSN(), store.Options{})
	testserver.Must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	if host, changes, err := s.Primary(); host != server.Addr() || changes != 0 || err != nil {
		t.Errorf("got primary %q after %d changes, %v, want %s", host, changes, err, server.Addr())
	}

	waits := make(chan error, 1)
	go func() {
		_, err := s.DB().ExecContext(context.Background(), "DO SLEEP(600)")
		waits <- err
	}()
	testserver.Until(t, "the statement runs", 10*time.Second, func() bool { return s.DB().Stats().InUse == 1 })
	testserver.Must(t, server.SQL(t.Context(), "SET GLOBAL read_only = ON"))
	select {
	case err := <-waits:
		if err == nil {
			t.Error("the statement has no error")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a statement waits on a connection to a server that is read-only")
	}
	_, err = s.Now(t.Context())
	for _, reason := range []string{down + ": dial tcp", "refused", server.Addr() + ": it is read-only"} {
		if order.Code(err) != order.ErrBusy.Code || !strings.Contains(err.Error(), reason) {
			t.Errorf("got %v, want %v that says %s", err, order.ErrBusy, reason)
		}
	}
	opened := make(chan error, 1)
	go func() {
		other, err := store.MySQL(t.Context(), config.FormatDSN(), store.Options{}) // waits for a primary
		if err == nil {
			err = other.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Errorf("got %v, want a start that waits for a primary", err)
	case <-time.After(3 * time.Second): // longer than a connection waits
	}
	testserver.Must(t, server.SQL(t.Context(), "SET GLOBAL read_only = OFF"))
	if err := <-opened; err != nil {
		t.Errorf("start: got %v", err)
	}
	testserver.Until(t, "it is writable again", time.Minute, func() bool { _, err := s.Now(t.Context()); return err == nil })
	wantFull(t, s, server)
}

// wantFull fails unless a server with too many connections says so, and stays the primary.
func wantFull(t *testing.T, s *store.Store, server *testserver.Server) {
	t.Helper()
	testserver.Must(t, server.SQL(t.Context(), "SET GLOBAL max_connections = 10"))
	var err error
	for range 12 {
		var conn *sql.Conn
		if conn, err = s.DB().Conn(t.Context()); err != nil {
			break
		}
		defer func() { _ = conn.Close() }()
	}
	host, _, noPrimary := s.Primary()
	if err == nil || !strings.Contains(err.Error(), "Too many connections") || host != server.Addr() {
		t.Errorf("a full server: got %v, and the primary %q, %v, want %s", err, host, noPrimary, server.Addr())
	}
}

// Answers such as "access denied" of all hosts are an error at once.
func TestMySQL_hostsDenied(t *testing.T) {
	t.Parallel()
	config, err := mysql.ParseDSN(testserver.MariaDB(t))
	testserver.Must(t, err)
	relay := testserver.LinkTo(t, config.Addr).Addr
	config.Passwd, config.Addr = "s3cret", config.Addr+","+relay
	_, err = store.MySQL(t.Context(), config.FormatDSN(), store.Options{}) // waiting would hang
	if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Count(err.Error(), "Access denied") != 2 {
		t.Errorf("got %v, want an error that both hosts deny access, without the password", err)
	}
}

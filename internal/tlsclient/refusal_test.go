package tlsclient_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"example.com/shop/internal/tlsclient"
	"example.com/shop/internal/tlsclient/tlstest"
)

// served is the error of a client that shakes hands with a server.
func served(t *testing.T, server func(net.Conn), client *tls.Config) error {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if conn, err := listener.Accept(); err == nil {
			defer conn.Close()
			server(conn)
		}
	}()
	here, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(here, client)
	err = conn.Handshake()
	if err == nil { // TLS 1.3: what the server thinks of the client comes later
		_, err = conn.Read(make([]byte, 1))
	}
	_ = here.Close()
	<-done
	return err
}

// shakes is a server with TLS.
func shakes(config *tls.Config) func(net.Conn) {
	return func(conn net.Conn) {
		server := tls.Server(conn, config)
		_ = server.Handshake()
		_, _ = io.Copy(io.Discard, conn) // until the client has what it was told
	}
}

// "The one of this package's errors that says why": each from a real handshake.
func TestRefusal(t *testing.T) {
	t.Parallel()
	ca, stranger := tlstest.NewCA(t), tlstest.NewCA(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM)
	trusting := &tls.Config{RootCAs: roots, ServerName: "db"}
	with := func(p tlstest.Pair) *tls.Config {
		pair, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			t.Fatal(err)
		}
		return &tls.Config{Certificates: []tls.Certificate{pair}}
	}
	old := with(ca.Issue(t, "db"))
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	curious := with(ca.Issue(t, "db"))
	curious.ClientAuth = tls.RequireAnyClientCert
	for name, c := range map[string]struct {
		server func(net.Conn)
		client *tls.Config
		want   error
	}{
		"plaintext": {func(conn net.Conn) {
			_, _ = io.WriteString(conn, "-ERR unknown command\r\n")
			_, _ = io.Copy(io.Discard, conn)
		}, trusting, tlsclient.ErrPlaintext},
		"other CA":           {shakes(with(stranger.Issue(t, "db"))), trusting, tlsclient.ErrUntrusted},
		"expired":            {shakes(with(ca.IssueExpired(t, "db"))), trusting, tlsclient.ErrExpired},
		"other name":         {shakes(with(ca.Issue(t, "cache"))), trusting, tlsclient.ErrName},
		"TLS 1.1":            {shakes(old), trusting, tlsclient.ErrHandshake},
		"client certificate": {shakes(curious), trusting, tlsclient.ErrHandshake},
		"no name to verify":  {shakes(with(ca.Issue(t, "db"))), &tls.Config{RootCAs: roots}, tlsclient.ErrHandshake},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := served(t, c.server, c.client)
			refused := tlsclient.Refusal(fmt.Errorf("connect: %w", err))
			if !errors.Is(refused, c.want) || !errors.Is(refused, err) {
				t.Errorf("got %v, want %v with its cause %v", refused, c.want, err)
			}
			if again := tlsclient.Refusal(refused); again != refused { //nolint:errorlint // the very same
				t.Errorf("got %v for a refusal, want it unchanged", again)
			}
		})
	}
}

// "It returns nil for every other error."
func TestRefusal_mayPass(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		nil, io.EOF, errors.New("LOADING"),
		&net.OpError{Op: "dial", Err: errors.New("connection refused")},
		&net.DNSError{Err: "no such host"},
		served(t, func(net.Conn) {}, &tls.Config{ServerName: "db"}), // hangs up
	} {
		if refused := tlsclient.Refusal(err); refused != nil {
			t.Errorf("%v: got %v, want nil", err, refused)
		}
	}
}

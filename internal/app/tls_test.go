package app_test

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/tlsclient"
	"example.com/shop/internal/tlsclient/tlstest"
)

// "A server without TLS, or with a certificate that is not to be trusted, is
// refused at the start": Redis.
func TestStart_redisTLS(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewCA(t)
	own := ca.Issue(t, "shop")
	known := tlsclient.Files{CA: tlstest.File(t, ca.PEM), Cert: tlstest.File(t, own.Cert), Key: tlstest.File(t, own.Key)}
	other := known
	other.CA = tlstest.File(t, tlstest.NewCA(t).PEM)
	client, err := tls.X509KeyPair(own.Cert, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	with := func(pair tlstest.Pair, clients ...tls.Certificate) string {
		return testserver.StartRedisTLS(t, testserver.Certificate{CA: ca.PEM, Cert: pair.Cert, Key: pair.Key}, clients...).Addr()
	}
	strict, good := with(ca.Issue(t, "localhost"), client), with(ca.Issue(t, "localhost"))
	expired, plaintext := with(ca.IssueExpired(t, "localhost")), testserver.Redis(t)
	const byURL = "rediss://:geheim@localhost"
	for name, c := range map[string]struct {
		server, host string // host as host:port begins, or a URL
		files        tlsclient.Files
		want         error // nil: it works
		says         string
	}{
		"right CA":         {good, "localhost", known, nil, ""},
		"right CA, URL":    {good, "rediss://localhost", known, nil, ""},
		"CA and redis:":    {good, "redis://localhost", known, nil, ""},
		"another CA":       {good, "redis://:geheim@localhost", other, tlsclient.ErrUntrusted, "SHOP_REDIS_CA"},
		"CAs of system":    {good, byURL, tlsclient.Files{}, tlsclient.ErrUntrusted, "SHOP_REDIS_CA"},
		"expired":          {expired, byURL, known, tlsclient.ErrExpired, "expired"},
		"another name":     {good, "redis://:geheim@127.0.0.1", known, tlsclient.ErrName, "SHOP_REDIS"},
		"client known":     {strict, "localhost", known, nil, ""},
		"client unknown":   {strict, "localhost", tlsclient.Files{CA: known.CA}, tlsclient.ErrHandshake, "certificate required"},
		"plaintext":        {plaintext, "redis://:geheim@localhost", known, tlsclient.ErrPlaintext, "SHOP_REDIS"},
		"plaintext by URL": {plaintext, byURL, tlsclient.Files{}, tlsclient.ErrPlaintext, "SHOP_REDIS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wire := testserver.NewWiretap(t, c.server)
			_, port, err := net.SplitHostPort(wire.Addr)
			if err != nil {
				t.Fatal(err)
			}
			s := embedded(t, 1)
			s.Lab, s.TokenSecret = false, secret(t, tokenSecret)
			s.Redis, s.RedisTLS = c.host+":"+port, c.files
			shop, err := app.Start(t.Context(), s)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil {
				t.Cleanup(func() { _ = shop.Shutdown(t.Context()) })
				untilReady(t, shop)
			} else if text := err.Error(); !strings.Contains(text, c.says) || strings.Contains(text, "geheim") || strings.Contains(text, "does not answer") {
				t.Errorf("got %v, want it at once, with %q and no password", err, c.says)
			}
			for _, word := range []string{"geheim", "HELLO", "hello"} {
				if wire.Saw(word) {
					t.Errorf("%s went over the wire in the clear", word)
				}
			}
		})
	}
}

// The same for a MariaDB: the message names the setting. What each server does with
// which certificate is tested in package store.
func TestStart_mysqlTLS(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewCA(t)
	pair := ca.Issue(t, "localhost")
	server := testserver.StartMariaDBTLS(t, testserver.Certificate{CA: ca.PEM, Cert: pair.Cert, Key: pair.Key})
	for name, c := range map[string]struct {
		dsn  string
		ca   *tlstest.CA
		want error // nil: it works
		says string
	}{
		"right CA":   {server.DSN(t), ca, nil, ""},
		"another CA": {server.DSN(t), tlstest.NewCA(t), tlsclient.ErrUntrusted, "SHOP_MYSQL_CA"},
		"plaintext":  {testserver.MariaDB(t), ca, tlsclient.ErrPlaintext, "SHOP_MYSQL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := app.Default()
			s.MySQL = strings.Replace(c.dsn, "127.0.0.1", "localhost", 1)
			s.MySQLTLS.CA = tlstest.File(t, c.ca.PEM)
			database, err := app.OpenDatabase(t.Context(), s)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil {
				_ = database.Close()
			} else if text := err.Error(); !strings.Contains(text, c.says) || strings.Contains(text, "did not answer") {
				t.Errorf("got %v, want it at once, with %s", err, c.says)
			}
		})
	}
}

package app_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// "If the settings require TLS, Start refuses a database or Redis that speaks plaintext or has an
// untrusted certificate."
func TestStart_redisTLS(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	own := ca.issue(t, "shop", time.Hour)
	caFile, cert, key := pemFile(t, ca.PEM), pemFile(t, own.Cert), pemFile(t, own.Key)
	other := pemFile(t, newCA(t).PEM)
	plaintext, clients := testserver.Redis(t), x509.NewCertPool()
	clients.AppendCertsFromPEM(ca.PEM)
	with := func(c certificate, clientAuth tls.ClientAuthType) string {
		pair, err := tls.X509KeyPair(c.Cert, c.Key)
		testserver.Must(t, err)
		config := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: clientAuth, ClientCAs: clients}
		server := miniredis.NewMiniRedis()
		testserver.Must(t, server.StartTLS(config))
		t.Cleanup(server.Close)
		return server.Addr()
	}
	strict := with(ca.issue(t, "localhost", time.Hour), tls.RequireAndVerifyClientCert)
	good := with(ca.issue(t, "localhost", time.Hour), tls.NoClientCert)
	expired := with(ca.issue(t, "localhost", -time.Hour), tls.NoClientCert)
	for name, c := range map[string]struct {
		server, host  string // host as host:port begins, or a URL
		ca, cert, key string
		want          string // in the error; empty: it works
	}{
		"right CA":       {good, "localhost", caFile, "", "", ""},
		"CA and redis:":  {good, "redis://localhost", caFile, "", "", ""},
		"another CA":     {good, "redis://:geheim@localhost", other, "", "", "unknown authority"},
		"CAs of system":  {good, "rediss://:geheim@localhost", "", "", "", "unknown authority"},
		"expired":        {expired, "rediss://:geheim@localhost", caFile, "", "", "expired"},
		"another name":   {good, "redis://:geheim@127.0.0.1", caFile, "", "", "127.0.0.1"},
		"client known":   {strict, "localhost", caFile, cert, key, ""},
		"client unknown": {strict, "localhost", caFile, "", "", "certificate required"},
		"plaintext":      {plaintext, "redis://:geheim@localhost", caFile, "", "", "SHOP_REDIS_CA"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, sent := wiretap(t, c.server)
			_, port, err := net.SplitHostPort(addr)
			testserver.Must(t, err)
			s := embedded(t, 1)
			s.Redis, s.RedisTLS.CA, s.RedisTLS.Cert, s.RedisTLS.Key = c.host+":"+port, c.ca, c.cert, c.key
			if c.want != "" {
				s.StartTimeout = 5 * time.Second
			}
			shop, err := app.Start(t.Context(), s, app.Hooks{})
			if c.want == "" {
				testserver.Must(t, err)
				t.Cleanup(func() { _ = shop.Shutdown(t.Context()) })
				untilReady(t, shop)
			} else if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "geheim") {
				t.Errorf("got %v, want %q and no password", err, c.want)
			}
			for _, word := range []string{"geheim", "HELLO", "hello"} {
				if sent.Has(word) {
					t.Errorf("%s went over the wire in the clear", word)
				}
			}
		})
	}
}

// The same for MySQL and MariaDB: with TLS the server must show a certificate for its host name that a CA has signed,
// or it is refused at once, before it is sent the user's name. The message names the setting.
func TestStart_mysqlTLS(t *testing.T) {
	t.Parallel()
	plaintext := testserver.MariaDB(t) // without a certificate of its own, unlike MySQL
	for name, mariadb := range map[string]bool{"MySQL": false, "MariaDB": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca := newCA(t)
			with := func(c certificate) string { return testserver.StartTLS(t, mariadb, c.CA, c.Cert, c.Key).DSN(t) }
			good, expired := with(ca.issue(t, "localhost", time.Hour)), with(ca.issue(t, "localhost", -time.Hour))
			for name, c := range map[string]struct {
				dsn, host string
				ca        *authority // nil: tls=true in the DSN
				works     bool
			}{
				"right CA":           {good, "localhost", ca, true},
				"right CA and a DSN": {good + "&tls=true", "localhost", ca, true},
				"another CA":         {good, "localhost", newCA(t), false},
				"CAs of the system":  {good, "localhost", nil, false},
				"expired":            {expired, "localhost", ca, false},
				"another name":       {good, "127.0.0.1", ca, false},
				"plaintext":          {plaintext, "localhost", ca, false},
				"plaintext, DSN":     {plaintext, "localhost", nil, false},
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					config, err := mysql.ParseDSN(c.dsn)
					testserver.Must(t, err)
					addr, sent := wiretap(t, config.Addr)
					s := app.Default().DatabaseSettings
					s.MySQL = strings.Replace(strings.Replace(c.dsn, config.Addr, addr, 1), "(127.0.0.1:", "("+c.host+":", 1)
					if c.ca == nil {
						s.MySQL += "&tls=true"
					} else {
						s.MySQLTLS.CA = pemFile(t, c.ca.PEM)
					}
					database, err := app.OpenDatabase(t.Context(), s)
					if c.works {
						testserver.Must(t, err)
						t.Cleanup(func() { _ = database.Close() })
						var name, cipher string
						err := database.DB().QueryRowContext(t.Context(), "SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher)
						if err != nil || cipher == "" {
							t.Errorf("got cipher %q, %v, want one", cipher, err)
						}
					} else if err == nil || !strings.Contains(err.Error(), c.host) || !strings.Contains(err.Error(), "SHOP_MYSQL_CA") ||
						strings.Contains(err.Error(), "did not answer") {
						t.Errorf("got %v, want a refusal at once that names %s and SHOP_MYSQL_CA", err, c.host)
					}
					if sent.Has("root") {
						t.Error("the user's name went over the wire in the clear")
					}
				})
			}
		})
	}
}

// wiretap returns the address of a link to a server, and the bytes that clients send through it, as an eavesdropper.
func wiretap(t testing.TB, server string) (addr string, sent *testserver.LogBuffer) {
	t.Helper()
	sent = new(testserver.LogBuffer)
	link := testserver.LinkTo(t, server)
	link.Judge(func(bytes string) testserver.Fate {
		_, _ = sent.Write([]byte(bytes))
		return testserver.Pass
	})
	return link.Addr, sent
}

// pemFile writes PEM to a file that goes with the test.
func pemFile(t testing.TB, text []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file.pem")
	testserver.Must(t, os.WriteFile(path, text, 0o600))
	return path
}

package store_test

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/store"
	"example.com/shop/internal/tlsclient"
	"example.com/shop/internal/tlsclient/tlstest"
)

// "The server must show a certificate for its host name that a CA has signed, or
// it is refused at once, before it is told the user's name."
func TestMySQLOverTLS(t *testing.T) {
	t.Parallel()
	plaintextMySQL := func(t testing.TB) string { return testserver.StartMySQLPlaintext(t).DSN(t) }
	for name, kind := range map[string]struct {
		start     func(testing.TB, testserver.Certificate) *testserver.Server
		plaintext func(testing.TB) (dsn string)
	}{
		"MySQL":   {testserver.StartMySQLTLS, plaintextMySQL},
		"MariaDB": {testserver.StartMariaDBTLS, testserver.MariaDB},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca := tlstest.NewCA(t)
			with := func(pair tlstest.Pair) string {
				return kind.start(t, testserver.Certificate{CA: ca.PEM, Cert: pair.Cert, Key: pair.Key}).DSN(t)
			}
			good, expired, plaintext := with(ca.Issue(t, "localhost")), with(ca.IssueExpired(t, "localhost")), kind.plaintext(t)
			for name, c := range map[string]struct {
				dsn, host string
				ca        *tlstest.CA // nil: tls=true in the DSN
				want      error       // nil: it works
			}{
				"right CA":           {good, "localhost", ca, nil},
				"another CA":         {good, "localhost", tlstest.NewCA(t), tlsclient.ErrUntrusted},
				"CAs of the system":  {good, "localhost", nil, tlsclient.ErrUntrusted},
				"expired":            {expired, "localhost", ca, tlsclient.ErrExpired},
				"another name":       {good, "127.0.0.1", ca, tlsclient.ErrName},
				"plaintext":          {plaintext, "localhost", ca, tlsclient.ErrPlaintext},
				"plaintext, DSN":     {plaintext, "localhost", nil, tlsclient.ErrPlaintext},
				"right CA and a DSN": {good + "&tls=true", "localhost", ca, nil},
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					through, wire := tap(t, c.dsn)
					db, err := openTLS(t, named(through, c.host), c.ca)
					if !errors.Is(err, c.want) {
						t.Fatalf("got %v, want %v", err, c.want)
					}
					if err != nil && !strings.Contains(err.Error(), c.host) {
						t.Errorf("got %v, want %s in it", err, c.host)
					}
					if err == nil {
						wantCipher(t, db)
						if _, err := store.Migrate(t.Context(), db); err != nil { // on connections of its own
							t.Error(err)
						}
					}
					if wire.Saw("root") {
						t.Error("the user's name went over the wire in the clear")
					}
				})
			}
		})
	}
}

// tap returns the DSN that leads through a wiretap, until the test ends.
func tap(t *testing.T, dsn string) (through string, wire *testserver.Wiretap) {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	wire = testserver.NewWiretap(t, config.Addr)
	return strings.Replace(dsn, config.Addr, wire.Addr, 1), wire
}

func openTLS(t *testing.T, dsn string, ca *tlstest.CA) (db *gorm.DB, err error) {
	t.Helper()
	// t.Context has no deadline: waiting would hang.
	if ca == nil {
		db, err = store.MySQL(t.Context(), dsn+"&tls=true", store.Pool{})
	} else {
		var config *tls.Config
		if config, err = (tlsclient.Files{CA: tlstest.File(t, ca.PEM)}).Config(); err != nil {
			t.Fatal(err)
		}
		db, err = store.MySQLOverTLS(t.Context(), dsn, config, store.Pool{})
	}
	if err == nil {
		t.Cleanup(func() { _ = store.Close(db) })
	}
	return db, err
}

// named returns the DSN of a server of this machine with another name for it.
func named(dsn, host string) string { return strings.Replace(dsn, "(127.0.0.1:", "("+host+":", 1) }

// wantCipher asks the server whether it talks in cipher.
func wantCipher(t *testing.T, db *gorm.DB) {
	t.Helper()
	var name, cipher string
	if err := db.Raw("SHOW STATUS LIKE 'Ssl_cipher'").Row().Scan(&name, &cipher); err != nil || cipher == "" {
		t.Errorf("got cipher %q, %v, want one", cipher, err)
	}
}

// "A DSN that says tls=false contradicts it", and a socket has no TLS.
func TestMySQLOverTLS_contradicted(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"shop:s3cret@tcp(db)/shop?tls=false":     "tls=false contradicts --mysql-ca",
		"shop:s3cret@unix(/run/mysqld)/shop":     "socket",
		"shop:s3cret@tcp(db)/shop?tls=preferred": "tls=preferred",
	} {
		_, err := store.MySQLOverTLS(t.Context(), dsn, &tls.Config{MinVersion: tls.VersionTLS12}, store.Pool{})
		if !errors.Is(err, store.ErrSettings) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want ErrSettings that says %q and no password", dsn, err, want)
		}
	}
}

package testserver

import (
	"context"
	"crypto/tls"
	"testing"
)

// Certificate is what a server with TLS works with, PEM.
type Certificate struct {
	CA        []byte // signs clients' certificates
	Cert, Key []byte // the server's own
}

// Where the files are in a container.
const (
	caFile   = "/etc/test-ca.pem"
	certFile = "/etc/test-cert.pem"
	keyFile  = "/etc/test-key.pem"
)

// with is the kind with a certificate and further options.
func (k kind) with(c Certificate, options ...string) kind {
	k.files = map[string][]byte{caFile: c.CA, certFile: c.Cert, keyFile: c.Key}
	k.command = append(k.command, options...)
	return k
}

var sqlTLS = []string{"--ssl-ca=" + caFile, "--ssl-cert=" + certFile, "--ssl-key=" + keyFile}

// StartMySQLTLS starts a MySQL for this test alone. It offers TLS and takes clients without it, too.
func StartMySQLTLS(t testing.TB, c Certificate) *Server {
	t.Helper()
	return own(t, mysqlKind().with(c, sqlTLS...))
}

// StartMariaDBTLS is StartMySQLTLS on a MariaDB.
func StartMariaDBTLS(t testing.TB, c Certificate) *Server {
	t.Helper()
	return own(t, mariadbKind().with(c, sqlTLS...))
}

// StartMySQLPlaintext starts a MySQL for this test alone that has no TLS. By default it would make its own certificate.
func StartMySQLPlaintext(t testing.TB) *Server {
	t.Helper()
	k := mysqlKind()
	k.command = append(k.command, "--tls-version=")
	return own(t, k)
}

// StartRedisTLS starts a Redis for this test alone that speaks nothing but TLS. With a client's certificate, it wants all
// clients to show one that its CA signed.
func StartRedisTLS(t testing.TB, c Certificate, client ...tls.Certificate) *Server {
	t.Helper()
	askClients := "no"
	if len(client) > 0 {
		askClients = "yes"
	}
	k := redisKind().with(c, "--port", "0", "--tls-port", "6379",
		"--tls-ca-cert-file", caFile, "--tls-cert-file", certFile, "--tls-key-file", keyFile, "--tls-auth-clients", askClients)
	config := &tls.Config{Certificates: client, InsecureSkipVerify: true} // it may have expired
	k.version = func(ctx context.Context, addr string) (string, error) { return redisVersion(ctx, addr, config) }
	return own(t, k)
}

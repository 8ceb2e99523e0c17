package testserver

import (
	"context"
	"crypto/tls"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Certificate is what a server with TLS works with, PEM.
type Certificate struct {
	CA        []byte // signs what clients show, where they have to
	Cert, Key []byte // the server's own
}

// Where the files are in a container.
const (
	caFile   = "/etc/test-ca.pem"
	certFile = "/etc/test-cert.pem"
	keyFile  = "/etc/test-key.pem"
)

func (c Certificate) files() map[string][]byte {
	return map[string][]byte{caFile: c.CA, certFile: c.Cert, keyFile: c.Key}
}

// StartMySQLTLS starts a MySQL for this test alone. It offers TLS and takes clients without it, too.
func StartMySQLTLS(t testing.TB, c Certificate) *Server {
	t.Helper()
	return startSQLTLS(t, mysqlKind(), c)
}

// StartMariaDBTLS is StartMySQLTLS on a MariaDB.
func StartMariaDBTLS(t testing.TB, c Certificate) *Server {
	t.Helper()
	return startSQLTLS(t, mariadbKind(), c)
}

// StartMySQLPlaintext starts a MySQL for this test alone that has no TLS. A MySQL that is not told so makes its own
// certificate.
func StartMySQLPlaintext(t testing.TB) *Server {
	t.Helper()
	k := mysqlKind()
	k.fast = append(slices.Clone(k.fast), "--tls-version=")
	return pool.own(t, k, startOptions{})
}

func startSQLTLS(t testing.TB, k kind, c Certificate) *Server {
	t.Helper()
	k.fast = append(slices.Clone(k.fast), "--ssl-ca="+caFile, "--ssl-cert="+certFile, "--ssl-key="+keyFile)
	return pool.own(t, k, startOptions{files: c.files()})
}

// StartRedisTLS starts a Redis for this test alone that speaks nothing but TLS. With a client's certificate, it wants all
// clients to show one that its CA signed.
func StartRedisTLS(t testing.TB, c Certificate, client ...tls.Certificate) *Server {
	t.Helper()
	askClients := "no"
	if len(client) > 0 {
		askClients = "yes"
	}
	k := redisKind()
	k.fast = append(slices.Clone(k.fast), "--port", "0", "--tls-port", "6379",
		"--tls-ca-cert-file", caFile, "--tls-cert-file", certFile, "--tls-key-file", keyFile, "--tls-auth-clients", askClients)
	k.version = func(ctx context.Context, addr string) (version string, err error) {
		config := &tls.Config{Certificates: client, InsecureSkipVerify: true} // it may have expired
		err = withRedisTLS(addr, config, func(rdb *redis.Client) error {
			version, err = askVersion(ctx, rdb)
			return err
		})
		return version, err
	}
	return pool.own(t, k, startOptions{files: c.files()})
}
